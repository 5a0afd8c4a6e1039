import pytest

from sglang_fleet.host.machine.client import Client, NoAnswerError
from tests.unit.host.talking import Talking


def client(server: Talking, *, api_key: str = "") -> Client:
    return Client("127.0.0.1", server.port, api_key=api_key)


def test_status_body_and_key(talking: Talking) -> None:
    talking.replies["/x"] = (418, {"a": 1})
    reply = client(talking, api_key="hush").post("/x", {"b": 2}, timeout=5)
    assert (reply.status, reply.json(), reply.short()) == (418, {"a": 1}, '{"a": 1}')
    assert talking.seen == [("/x", "Bearer hush", {"b": 2})]


def test_what_is_no_json_is_nothing(talking: Talking) -> None:
    talking.replies["/x"] = (200, b"<html>")
    assert client(talking).get("/x", timeout=5).json() is None


def test_an_address_that_cannot_be_reached_is_told_in_words() -> None:
    with pytest.raises(NoAnswerError, match=r"^[A-Za-z ]+$"):
        Client("255.255.255.255", 1).get("/health", timeout=5)


def test_nobody_there_is_refused(talking: Talking) -> None:
    with pytest.raises(NoAnswerError) as caught:
        Client("127.0.0.2", talking.port).get("/health", timeout=5)
    assert (caught.value.refused, caught.value.late) == (True, False)


def test_a_request_that_hangs_is_given_up_in_the_time_there_is_for_all(talking: Talking) -> None:
    talking.replies["/x"] = (200, "hang")
    with pytest.raises(NoAnswerError, match="did not come back within") as caught:
        client(talking).within(0.2).get("/x", timeout=100)
    assert caught.value.late
    with pytest.raises(NoAnswerError, match="within 0 s"):
        client(talking).within(0).get("/x", timeout=100)
    assert talking.paths == ["/x"]
