import contextlib
import threading

from sglang_fleet.host.activation.proofs.stamina import REQUESTS, Stamina, due
from sglang_fleet.host.machine.answers import ANSWERED, SILENT, Question
from tests.unit.host.talking import Reply, Talking, completed


def question(server: Talking) -> Question:
    return Question(hosts=("127.0.0.1",), port=server.port)


def test_they_are_spread_over_the_soak() -> None:
    assert [due(age, 30.0) for age in (0.0, 15.0, 30.0, 99.0)] == [0, REQUESTS // 2, REQUESTS, REQUESTS]
    assert due(0.0, 0.0) == REQUESTS


def test_all_are_asked_for_with_one_token_each(talking: Talking) -> None:
    answer = Stamina(5.0, 20)(question(talking))
    assert (answer.kind, answer.text) == (ANSWERED, "answered 20 short completions")
    assert [body["sampling_params"]["max_new_tokens"] for body in talking.bodies("/generate")] == [1] * 20


def test_f21_a_server_that_hangs_after_a_number_of_them_does_not_pass(talking: Talking) -> None:
    def generate(body: object) -> Reply:
        return (200, "hang") if len(talking.seen) > 10 else completed(body)

    talking.replies["/generate"] = generate
    assert Stamina(0.5, 20)(question(talking)).kind == SILENT


def test_a_full_queue_is_asked_one_by_one(talking: Talking) -> None:
    place = threading.Lock()

    def generate(body: object) -> Reply:
        if not place.acquire(blocking=False):
            return 503, {"message": "The request queue is full."}
        with contextlib.ExitStack() as taken:
            taken.callback(place.release)
            talking.held.wait(0.02)
            return completed(body)

    talking.replies["/generate"] = generate
    assert Stamina(5.0, 9)(question(talking)).good


def test_a_queue_that_stays_full_is_no_answer(talking: Talking) -> None:
    talking.replies["/generate"] = (503, {})
    assert Stamina(5.0, 9)(question(talking)).kind == SILENT
