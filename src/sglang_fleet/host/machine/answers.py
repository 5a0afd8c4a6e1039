"""Asking a server whether it serves: at every address whether it is up, then the proof that is wanted (principle 7).

Each request is bounded; a question that hangs all the same is given up by whoever asked it (gate.py).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any, Callable, Mapping

from .addresses import local_address
from .client import OK, UNAVAILABLE, Client, NoAnswerError

__all__ = [
    "ANSWERED",
    "COMPLETION_TIMEOUT",
    "HEALTHY",
    "LOADING",
    "REFUTED",
    "SILENT",
    "STARTING",
    "WRONG",
    "Answer",
    "Proof",
    "Question",
    "ask",
    "local_address",
]

HEALTH_TIMEOUT = 25.0
"""Seconds for one /health. It generates a token, takes a second at least, and gives up itself after 20 s
(SGLANG_HEALTH_CHECK_TIMEOUT; sglang 0.5.23, srt/entrypoints/http_server.py)."""

READY_TIMEOUT = 5.0
"""Seconds for one /ready. It generates nothing and takes a millisecond (sglang 0.5.23; 0.5.9 has none)."""

READY_PAUSES = 0.1, 0.15, 0.2, 0.25
"""Seconds between two /ready of a server that warms up, the last ones again and again: it says 503 in a millisecond,
and each is a line of its log."""

COMPLETION_TIMEOUT = 60.0
"""Seconds for one completion; the first one of a server may compile kernels."""

KNOCK = 0.1
"""Seconds between two tries at a port that nobody listens on yet: being refused costs neither side anything."""

STARTING, LOADING, SILENT, WRONG, REFUTED, HEALTHY, ANSWERED = (
    "starting",
    "loading",
    "silent",
    "wrong",
    "refuted",
    "healthy",
    "answered",
)


@dataclass(frozen=True)
class Answer:
    """What came back: one of the kinds above, and the words for it.

    Attributes:
        served: whether /health was well, whatever came after it.
        found: what a proof learned that outlasts it, to be recorded when the release is proven.
    """

    kind: str
    text: str
    served: bool = False
    found: Mapping[str, Any] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether everything that was asked was answered."""
        return self.kind in (HEALTHY, ANSWERED)

    @property
    def healthy(self) -> bool:
        """Whether the server said that it serves, even if more was asked and went wrong."""
        return self.served or self.good

    @property
    def final(self) -> bool:
        """Whether the server served and proved the opposite: asking again gives nothing but the same."""
        return self.kind == REFUTED


@dataclass(frozen=True)
class Proof(ABC):
    """One thing a server has to show beside /health. `seconds` bounds all that it asks."""

    seconds: float

    @abstractmethod
    def __call__(self, question: Question) -> Answer:
        """Ask and judge. What is no answer is SILENT or WRONG and asked again; REFUTED ends the start."""


@dataclass(frozen=True)
class Question:
    """What to ask, and where.

    Attributes:
        hosts: the addresses that must each be healthy.
        probe: `generate`, `embedding`, or `alive` for /health alone.
        model: the name it is served under, for the interfaces that want one.
        api_key: sent as a bearer token; "" for none.
        key_unknown: the server may want a key that we do not know (a hand-written unit): being asked for one counts
            as an answer.
        tls: whether it speaks HTTPS; its certificate is for its own clients to check, here only its answers matter.
        tokenized: whether it takes token ids only.
        leader: where rank 0 of this replica answers, when it is another host; it has to be healthy too, and it is the
            one that proofs are asked of. The own server is then SGLang's small one for ranks above 0.
        health: whether /health is asked at all, before the proof.
        ready: whether a /ready that says 200 may stand for /health where a proof follows: that takes more than the
            one token of /health, which costs a second at each address. Whatever else it says, /health decides: old
            releases have no /ready, and after a pause it says 503 until a /health was well.
        opening: seconds for which a port that nobody listens on is tried again, so that a server that starts is asked
            as soon as it listens; likewise a /ready that says 503, so that it is asked as soon as it has warmed up.
        proof: what is asked beside /health; None for nothing.
    """

    hosts: tuple[str, ...]
    port: int
    probe: str = "generate"
    model: str = ""
    api_key: str = ""
    key_unknown: bool = False
    tls: bool = False
    tokenized: bool = False
    leader: tuple[str, int] | None = None
    health: bool = True
    ready: bool = False
    opening: float = 0.0
    proof: Proof | None = None

    @property
    def patience(self) -> float:
        """Seconds after which even the slowest answer is overdue."""
        asked = len(self.hosts) + (self.leader is not None) if self.health else 0
        each = self.opening + HEALTH_TIMEOUT + (READY_TIMEOUT if self.ready else 0.0)
        return each * asked + (self.proof.seconds if self.proof is not None else 0.0) + 5.0

    @property
    def clients(self) -> tuple[Client, ...]:
        """Whom a proof asks: rank 0 of the replica, else the server at each of its addresses."""
        if self.leader is not None:
            return (self._leader(self.leader),)
        return tuple(Client(host, self.port, self.api_key, self.tls) for host in self.hosts)

    @property
    def healthy(self) -> tuple[Client, ...]:
        """Who has to be healthy. SGLang's small server of ranks above 0 never speaks HTTPS."""
        if self.leader is None:
            return self.clients
        own = tuple(Client(host, self.port, self.api_key) for host in self.hosts)
        return (*own, self._leader(self.leader))

    def _leader(self, leader: tuple[str, int]) -> Client:
        return Client(leader[0], leader[1], self.api_key, self.tls)


def ask(question: Question, healthy: Callable[[], None] = lambda: None) -> Answer:
    """Ask now and wait for the answer; `healthy` is called as soon as the server said so, before the proof."""
    proof = question.proof if question.probe != "alive" else None
    answer = Answer(HEALTHY, "healthy")
    if question.health:
        answer = _healthy(question, healthy, ready=question.ready and proof is not None)
    if not answer.good or proof is None:
        return answer
    return replace(proof(question), served=True)


def _healthy(question: Question, healthy: Callable[[], None], *, ready: bool) -> Answer:
    """Ask everywhere; the first that is not well is the answer. `healthy` is called once the server serves."""
    answer = Answer(WRONG, "there is no address to ask")
    asked = question.healthy
    for index, client in enumerate(asked):
        at = f" at {client.host}" if len(asked) > 1 else ""
        answer = _health(client, at, opening=question.opening, ready=ready)
        if not answer.good:
            # With a leader, the own small server says nothing about the replica.
            return replace(answer, served=index > 0 and question.leader is None)
        if index == (0 if question.leader is None else len(asked) - 1):
            healthy()
    return answer


def _health(client: Client, at: str, *, opening: float, ready: bool) -> Answer:
    """Ask one address; where nobody listens, knock for so many seconds."""
    until = time.monotonic() + opening
    while True:
        status = _ready_status(client) if ready else None
        if status == OK:
            return Answer(HEALTHY, f"200{at}, ready")
        answer = _health_once(client, at)
        if status == UNAVAILABLE and answer.kind == LOADING and _gets_ready(client, until):
            return Answer(HEALTHY, f"200{at}, ready")
        if answer.kind != STARTING or time.monotonic() >= until:
            return answer
        time.sleep(KNOCK)


def _ready_status(client: Client) -> int | None:
    """Ask /ready; None where it does not answer, which /health tells more about."""
    try:
        return client.get("/ready", timeout=READY_TIMEOUT).status
    except NoAnswerError:
        return None


def _gets_ready(client: Client, until: float) -> bool:
    """Ask /ready of a server that warms up, again and again until that moment."""
    pauses = chain(READY_PAUSES, repeat(READY_PAUSES[-1]))
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(next(pauses), left))
        status = _ready_status(client)
        if status != UNAVAILABLE:
            return status == OK
    return False


def _health_once(client: Client, at: str) -> Answer:
    try:
        status = client.get("/health", timeout=HEALTH_TIMEOUT).status
    except NoAnswerError as error:
        if error.refused:
            return Answer(STARTING, f"connection refused{at}, starting")
        if error.late:
            return Answer(SILENT, f"/health{at} did not answer within {HEALTH_TIMEOUT:.0f} s")
        return Answer(SILENT, f"/health{at}: {error}")
    if status == OK:
        return Answer(HEALTHY, f"200{at}, healthy")
    if status == UNAVAILABLE:
        return Answer(LOADING, f"503{at}, loading")
    return Answer(WRONG, f"/health{at} answers {status}")
