"""Asking a server whether it serves: /health at every address, then a real completion (principle 7).

Each request is bounded; a question that hangs all the same is given up by whoever asked it (gate.py).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import socket
import threading
from dataclasses import dataclass
from typing import Any, Protocol

HEALTH_TIMEOUT = 25.0
"""Seconds for one /health. It generates a token, takes a second at least, and gives up itself after 20 s
(SGLANG_HEALTH_CHECK_TIMEOUT; sglang 0.5.23, srt/entrypoints/http_server.py)."""

COMPLETION_TIMEOUT = 60.0
"""Seconds for one completion; the first one of a server may compile kernels."""

_OK = 200
_UNAVAILABLE = 503
_ASKS_FOR_A_KEY = (401, 403)
_LARGEST_BODY = 1 << 20
_SHOWN = 120
_TEXT = "The capital of France is"
_TOKENS = 4

STARTING, LOADING, SILENT, WRONG, HEALTHY, ANSWERED = (
    "starting",
    "loading",
    "silent",
    "wrong",
    "healthy",
    "answered",
)


@dataclass(frozen=True)
class Question:
    """What to ask, and where.

    Attributes:
        hosts: the addresses that must each be healthy; the last one is asked for the completion.
        probe: `generate`, `embedding`, or `alive` for /health alone.
        model: the name it is served under, for the interfaces that want one.
        api_key: sent as a bearer token; "" for none.
        key_unknown: the server may want a key that we do not know (a hand-written unit): being asked for one counts
            as an answer.
        tls: whether it speaks HTTPS; its certificate is for its own clients to check, here only its answers matter.
        tokenized: whether it takes token ids only.
        completion: whether to ask for a completion at all, and for how many seconds; 0 for /health alone.
    """

    hosts: tuple[str, ...]
    port: int
    probe: str = "generate"
    model: str = ""
    api_key: str = ""
    key_unknown: bool = False
    tls: bool = False
    tokenized: bool = False
    completion: float = COMPLETION_TIMEOUT

    @property
    def patience(self) -> float:
        """Seconds after which even the slowest answer is overdue."""
        return HEALTH_TIMEOUT * len(self.hosts) + self.completion + 5.0


@dataclass(frozen=True)
class Answer:
    """What came back: one of the kinds above, and the words for it."""

    kind: str
    text: str

    @property
    def good(self) -> bool:
        """Whether everything that was asked was answered."""
        return self.kind in (HEALTHY, ANSWERED)


def local_address(host: str) -> str:
    """Return the address at which a server bound to `host` is reached from its own machine.

    A server on `::` need not take IPv4: asyncio, so uvicorn, sets IPV6_V6ONLY.
    """
    bare = host.strip("[]")
    return {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(bare, bare)  # noqa: S104 - read, not bound


def ask(question: Question) -> Answer:
    """Ask now and wait for the answer."""
    answer = Answer(WRONG, "there is no address to ask")
    for host in question.hosts:
        answer = _health(question, host)
        if not answer.good:
            return answer
    if question.completion <= 0 or question.probe == "alive":
        return answer
    return _completion(question, question.hosts[-1])


def _health(question: Question, host: str) -> Answer:
    at = _at(question, host)
    try:
        status, _ = _request(host, question, "/health", timeout=HEALTH_TIMEOUT)
    except ConnectionRefusedError:
        return Answer(STARTING, f"connection refused{at}, starting")
    except (TimeoutError, socket.timeout):  # two types before Python 3.10
        return Answer(SILENT, f"/health{at} did not answer within {HEALTH_TIMEOUT:.0f} s")
    except (OSError, http.client.HTTPException) as error:
        return Answer(SILENT, f"/health{at}: {_short(error)}")
    if status == _OK:
        return Answer(HEALTHY, f"200{at}, healthy")
    if status == _UNAVAILABLE:
        return Answer(LOADING, f"503{at}, loading")
    return Answer(WRONG, f"/health{at} answers {status}")


def _completion(question: Question, host: str) -> Answer:
    body: dict[str, Any]
    if question.probe == "embedding":
        path, body = "/v1/embeddings", {"model": question.model, "input": _TEXT}
    else:
        path = "/generate"
        prompt = {"input_ids": [0]} if question.tokenized else {"text": _TEXT}
        body = {**prompt, "sampling_params": {"max_new_tokens": _TOKENS, "temperature": 0}}
    try:
        status, data = _request(host, question, path, timeout=question.completion, body=body)
    except (TimeoutError, socket.timeout):  # two types before Python 3.10
        return Answer(SILENT, f"200, but a completion did not come back within {question.completion:.0f} s")
    except (OSError, http.client.HTTPException) as error:
        return Answer(SILENT, f"200, but a completion failed: {_short(error)}")
    if status in _ASKS_FOR_A_KEY and question.key_unknown:
        return Answer(ANSWERED, f"200; {path} asks for an API key")
    if status != _OK:
        return Answer(WRONG, f"200, but {path} answers {status}: {_short(data.decode('utf-8', 'replace'))}")
    try:
        says = (
            judge_embedding(json.loads(data)) if question.probe == "embedding" else judge_completion(json.loads(data))
        )
    except ValueError:
        says = "something that is not JSON"
    return Answer(WRONG, f"200, but {path} answers {says}") if says else Answer(ANSWERED, "answered a completion")


def judge_completion(answer: Any) -> str:  # noqa: ANN401 - any JSON
    """Return what is wrong with the answer of /generate; "" when it holds at least one token."""
    entry = answer[0] if isinstance(answer, list) and answer else answer
    if not isinstance(entry, dict):
        return "no completion"
    details = entry.get("meta_info")
    tokens = details.get("completion_tokens") if isinstance(details, dict) else None
    if isinstance(tokens, int):
        return "" if tokens >= 1 else "a completion without a token"
    return "" if entry.get("text") else "an empty completion"


def judge_embedding(answer: Any) -> str:  # noqa: ANN401 - any JSON
    """Return what is wrong with the answer of /v1/embeddings; "" when it holds a vector."""
    try:
        vector = answer["data"][0]["embedding"]
    except (KeyError, IndexError, TypeError):
        return "no embedding"
    return "" if isinstance(vector, list) and vector else "an empty embedding"


def _request(
    host: str, question: Question, path: str, *, timeout: float, body: dict[str, Any] | None = None
) -> tuple[int, bytes]:
    """Return status and body of one request. Raises OSError, HTTPException."""
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if question.api_key:
        headers["Authorization"] = f"Bearer {question.api_key}"
    connection = _connection(host, question, timeout=timeout)
    with contextlib.closing(connection):
        data = json.dumps(body) if body is not None else None
        connection.request("POST" if body is not None else "GET", path, body=data, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(_LARGEST_BODY)


def _connection(host: str, question: Question, *, timeout: float) -> http.client.HTTPConnection:
    if not question.tls:
        return http.client.HTTPConnection(host, question.port, timeout=timeout)
    import ssl  # noqa: PLC0415 - few servers need it

    context = ssl._create_unverified_context()  # noqa: S323, SLF001 - the address is this host's own
    return http.client.HTTPSConnection(host, question.port, timeout=timeout, context=context)


def _at(question: Question, host: str) -> str:
    return f" at {host}" if len(question.hosts) > 1 else ""


def _short(what: object) -> str:
    text = " ".join(str(what).split()) or type(what).__name__
    return text[:_SHOWN]


class Asker(Protocol):
    """Asks one question at a time without making its caller wait."""

    def ask(self, question: Question) -> None:
        """Begin to ask; an older question is forgotten."""

    def answer(self) -> Answer | None:
        """Return the answer once it is there, and once only; None while it is not."""


class ThreadAsker:
    """Asks from a thread of its own, so that a server that hangs never hides that its process has died."""

    def __init__(self) -> None:
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()

    def ask(self, question: Question) -> None:
        """Begin to ask in a new thread; one that hangs in an older question keeps its own queue, which nobody reads."""
        answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._answers = answers

        def work() -> None:
            try:
                answers.put(ask(question))
            except Exception as error:  # noqa: BLE001 - a thread's exception would be lost: any is an answer
                answers.put(Answer(WRONG, f"asking failed: {_short(error)}"))

        threading.Thread(target=work, daemon=True).start()

    def answer(self) -> Answer | None:
        """Return the answer once it is there."""
        try:
            return self._answers.get_nowait()
        except queue.Empty:
            return None
