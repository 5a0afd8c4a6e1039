import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from sglang_fleet.host.machine import answers
from sglang_fleet.host.machine.answers import Question, ThreadAsker, ask, local_address


class Handler(BaseHTTPRequestHandler):
    replies: ClassVar[dict[str, tuple[int, Any]]] = {}
    seen: ClassVar[list[tuple[str, str, Any]]] = []
    held: ClassVar[threading.Event] = threading.Event()

    def reply(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.seen.append((self.path, self.headers.get("Authorization", ""), body))
        status, content = self.replies[self.path]
        if content == "hang":
            self.held.wait(10)
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = reply  # noqa: N815 - http.server's names

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    Handler.replies = {
        "/health": (200, {}),
        "/generate": (200, {"text": " Paris", "meta_info": {"completion_tokens": 4}}),
    }
    Handler.seen.clear()
    Handler.held.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_address[1]
    Handler.held.set()
    server.shutdown()
    thread.join()
    server.server_close()


def question(port: int, **more: Any) -> Question:
    return Question(hosts=("127.0.0.1",), port=port, **more)


def test_a_completion_with_tokens_is_an_answer(port: int) -> None:
    answer = ask(question(port, api_key="hush"))
    assert (answer.kind, answer.good) == ("answered", True)
    assert [path for path, _, _ in Handler.seen] == ["/health", "/generate"]
    assert {key for _, key, _ in Handler.seen} == {"Bearer hush"}
    body = Handler.seen[1][2]
    assert body["sampling_params"] == {"max_new_tokens": 4, "temperature": 0}


def test_an_embedding_is_asked_by_the_served_name(port: int) -> None:
    Handler.replies["/v1/embeddings"] = (200, {"data": [{"embedding": [0.1]}]})
    assert ask(question(port, probe="embedding", model="e5")).good
    assert Handler.seen[1][2]["model"] == "e5"


def test_alive_and_no_completion_stop_at_health(port: int) -> None:
    assert ask(question(port, probe="alive")).kind == "healthy"
    assert ask(question(port, completion=0)).kind == "healthy"
    assert {path for path, _, _ in Handler.seen} == {"/health"}


@pytest.mark.parametrize(
    ("path", "status", "content", "kind", "says"),
    [
        ("/health", 503, {}, "loading", "503, loading"),
        ("/health", 404, {}, "wrong", "/health answers 404"),
        (
            "/generate",
            200,
            {"text": "", "meta_info": {"completion_tokens": 0}},
            "wrong",
            "a completion without a token",
        ),
        ("/generate", 200, {"text": ""}, "wrong", "an empty completion"),
        ("/generate", 200, [], "wrong", "no completion"),
        ("/generate", 200, b"<html>", "wrong", "not JSON"),
        ("/generate", 500, {"error": "boom"}, "wrong", "/generate answers 500"),
        ("/generate", 401, {}, "wrong", "/generate answers 401"),
    ],
)
def test_what_is_no_answer(port: int, path: str, status: int, content: object, kind: str, says: str) -> None:
    Handler.replies[path] = (status, content)
    answer = ask(question(port))
    assert (answer.kind, answer.good) == (kind, False)
    assert says in answer.text


def test_a_key_that_nobody_knows_is_enough_of_an_answer_for_a_unit_by_hand(port: int) -> None:
    Handler.replies["/generate"] = (401, {})
    assert ask(question(port, key_unknown=True)).good


def test_a_completion_that_hangs_is_given_up(port: int) -> None:
    Handler.replies["/generate"] = (200, "hang")
    answer = ask(question(port, completion=0.2))
    assert answer.kind == "silent"
    assert "did not come back" in answer.text


def test_every_address_must_answer(port: int) -> None:
    both = Question(hosts=("127.0.0.1", "127.0.0.2"), port=port)
    answer = ask(both)
    assert (answer.kind, answer.text) == ("starting", "connection refused at 127.0.0.2, starting")


def test_the_asker_never_waits(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    Handler.replies["/health"] = (200, "hang")
    monkeypatch.setattr(answers, "HEALTH_TIMEOUT", 5.0)
    asker = ThreadAsker()
    asker.ask(question(port))
    assert asker.answer() is None
    Handler.replies["/health"] = (200, {})
    asker.ask(question(port))
    until = time.monotonic() + 5
    while (answer := asker.answer()) is None and time.monotonic() < until:
        time.sleep(0.01)
    assert answer
    assert answer.good
    assert asker.answer() is None


@pytest.mark.parametrize(
    ("host", "address"),
    [("0.0.0.0", "127.0.0.1"), ("", "127.0.0.1"), ("::", "::1"), ("[::]", "::1"), ("10.1.2.3", "10.1.2.3")],  # noqa: S104 - read
)
def test_the_local_address(host: str, address: str) -> None:
    assert local_address(host) == address


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"data": [{"embedding": [1.0]}]}, ""),
        ({"data": [{"embedding": []}]}, "an empty embedding"),
        ({"data": []}, "no embedding"),
        (None, "no embedding"),
    ],
)
def test_embeddings_are_judged(answer: object, says: str) -> None:
    assert answers.judge_embedding(answer) == says
