"""The health gate: from the birth of a main process to its first completion, and through the soak.

Two things are watched at once: the process, through systemd, and its answers, through HTTP. A process that died is
seen within one interval, whatever the answers are doing; and answers count only while the process behind the port
is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ..machine.answers import COMPLETION_TIMEOUT, HEALTHY, SILENT, WRONG, Answer, Question, local_address
from ..machine.clock import span
from ..machine.units import Status, how_it_ended

if TYPE_CHECKING:
    from ..machine.answers import Asker
    from ..machine.clock import Clock
    from ..machine.units import Manager
    from .events import Events

HEALTH_FAILURES = 3
"""Failed /health in a row during the soak that end it: one or two happen under a long prefill (sglang#22511)."""

SLOW_COMPLETIONS = 5
"""Completions in a row without an answer, at the end of the soak: a full queue makes ours wait like anybody's."""

LONGEST_LOOK = 1.0
"""Seconds at most between two looks at the process."""

ADOPTED_PATIENCE = 60.0
"""Seconds that a process which is older than its startup deadline gets to answer."""

RESTARTED = "ended, and systemd started it again"

_NOT_YET = Answer("", "no answer yet")


class StartError(Exception):
    """A start did not become a healthy server.

    Attributes:
        invocation: systemd's id of the start that failed, whose journal says more; "" when there was none.
        served: whether it had answered before, so that requests may be in flight.
        died: whether its process ended, so that its last words say why.
    """

    def __init__(self, reason: str, *, invocation: str = "", served: bool = False, died: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.invocation = invocation
        self.served = served
        self.died = died


@dataclass(frozen=True)
class GateSpec:
    """What a healthy server is, for one release or captured unit. Times in seconds.

    Attributes:
        startup_deadline: from the start of the main process; nothing extends it (F19).
        soak: how long it must stay healthy before it is proven.
        completion: how long one completion may take.
    """

    question: Question
    startup_deadline: float
    interval: float
    soak: float
    completion: float = COMPLETION_TIMEOUT

    @classmethod
    def of(cls, manifest: Mapping[str, Any], *, api_key: str) -> GateSpec:
        """Return the gate that a release's manifest asks for."""
        gate = manifest.get("gate") or {}
        arguments = (manifest.get("spec") or {}).get("args") or {}
        hosts = [local_address(str(manifest.get("host") or gate.get("host") or ""))]
        if gate.get("address") and gate["address"] not in hosts:
            hosts.append(str(gate["address"]))
        question = Question(
            hosts=tuple(hosts),
            port=int(gate.get("port") or manifest.get("port") or 0),
            probe=str(gate.get("probe") or "generate"),
            model=str(arguments.get("served_model_name") or arguments.get("model_path") or ""),
            api_key=api_key,
            tls=bool(arguments.get("ssl_certfile")),
            tokenized=bool(arguments.get("skip_tokenizer_init")),
        )
        return cls(
            question=question,
            startup_deadline=float(gate.get("startup_deadline", 1800.0)),
            interval=float(gate.get("interval", 2.0)),
            soak=float(gate.get("soak", 30.0)),
            completion=float(gate.get("completion", COMPLETION_TIMEOUT)),
        )


@dataclass(frozen=True)
class Watched:
    """The one start of the unit that the gate is about.

    Attributes:
        started: when its main process began, in seconds of CLOCK_MONOTONIC.
        adopted: whether it ran before this activation, which only checks and records it.
    """

    unit: str
    invocation: str
    restarts: int
    main_pid: int
    started: float
    adopted: bool = False

    @classmethod
    def of(cls, unit: str, status: Status, *, adopted: bool = False) -> Watched:
        """Return the start that a status shows."""
        return cls(unit, status.invocation, status.restarts, status.main_pid, status.started, adopted)


@dataclass
class Surroundings:
    """What the gate needs from the host. `answerer` says what is wrong with who answers on a port, "" if it is ours."""

    manager: Manager
    clock: Clock
    asker: Asker
    events: Events
    answerer: Callable[[int, str], str]


def death(watched: Watched, status: Status) -> str:
    """Return how the watched start ended, "" while its main process lives.

    Not only "is it active": a unit that restarted by itself is active again, in another invocation (F18).
    """
    if status.invocation == watched.invocation and status.main_pid == watched.main_pid and status.running:
        return ""
    if status.restarts > watched.restarts and status.invocation != watched.invocation and status.main_pid:
        return RESTARTED
    if status.main_pid == watched.main_pid and status.main_pid:
        return f"is being stopped ({status.sub})"
    return how_it_ended(status)


def deadline(watched: Watched, spec: GateSpec, now: float) -> float:
    """Return the moment by which the start must have answered."""
    fixed = watched.started + spec.startup_deadline
    return max(fixed, now + ADOPTED_PATIENCE) if watched.adopted else fixed


class Gate:
    """Watches one start. `ready` waits for its first completion, `soak` for it to stay healthy."""

    def __init__(self, around: Surroundings, watched: Watched, spec: GateSpec) -> None:
        self._around = around
        self._watched = watched
        self._spec = spec
        self._asked_at: float | None = None
        self._patience = 0.0
        self._proving = False
        self._served = False

    def ready(self) -> float:
        """Wait until the server answered a completion and systemd holds it for started; returns the seconds it took.

        Raises:
            StartError: the process died, or the deadline passed.
            SystemctlError: systemd does not answer.
        """
        clock, last, next_ask = self._around.clock, _NOT_YET, 0.0
        until = deadline(self._watched, self._spec, clock.monotonic())
        while True:
            status = self._alive()
            answer = self._collect(status)
            now = clock.monotonic()
            if answer is not None:
                last = answer
                if answer.good and status.active == "active":
                    self._served = True
                    return now - self._watched.started
                next_ask = now + self._spec.interval
            if now >= until:
                self._fail(f"did not answer within {span(self._spec.startup_deadline)}; last seen: {last.text}")
            if self._asked_at is None and now >= next_ask:
                self._ask(completion=min(self._spec.completion, max(until - now, 1.0)))
            if last is not _NOT_YET:
                self._progress(last, status, now)
            clock.sleep(min(self._spec.interval, LONGEST_LOOK))

    def soak(self) -> float:
        """Wait through the soak, with one more completion at its end; returns the seconds it took.

        Raises:
            StartError: the process died, or /health failed three times in a row, or the last completion failed.
            SystemctlError: systemd does not answer.
        """
        clock = self._around.clock
        began = clock.monotonic()
        until, failures, next_ask, final = began + self._spec.soak, 0, began, False
        while True:
            status = self._alive()
            proving = self._proving  # an earlier /health may still be out when the soak is over: it proves nothing
            answer = self._collect(status)
            now = clock.monotonic()
            if answer is not None:
                failures = 0 if answer.good else failures + 1
                if final and proving and answer.good:
                    return now - began
                if failures >= (SLOW_COMPLETIONS if proving and answer.kind == SILENT else HEALTH_FAILURES):
                    self._fail(f"was healthy for {span(now - began)}, then not: {answer.text}")
                next_ask = now + self._spec.interval
            final = final or now >= until
            if self._asked_at is None and now >= next_ask:
                self._ask(completion=self._spec.completion if final else 0.0)
            self._around.events.wait(
                "soak",
                "soak",
                f"healthy, soaking, {span(now - began)} of {span(self._spec.soak)}",
                age=now - began,
            )
            clock.sleep(min(self._spec.interval, LONGEST_LOOK))

    def _alive(self) -> Status:
        """Return the unit's status; StartError when the watched process is gone."""
        status = self._around.manager.show(self._watched.unit)
        how = death(self._watched, status)
        if how:
            self._fail(how, died=True)
        return status

    def _ask(self, *, completion: float) -> None:
        question = replace(self._spec.question, completion=completion)
        self._asked_at = self._around.clock.monotonic()
        self._patience = question.patience
        self._proving = completion > 0
        self._around.asker.ask(question)

    def _collect(self, status: Status) -> Answer | None:
        """Return the answer when there is one, or when it is overdue; a stranger's answer is not ours."""
        if self._asked_at is None:
            return None
        answer = self._around.asker.answer()
        if answer is None:
            overdue = self._around.clock.monotonic() - self._asked_at
            if overdue < self._patience:
                return None
            answer = Answer(SILENT, f"no answer within {span(overdue)}")
        self._asked_at = None
        # While our process lives nobody can take its port: once more at each completion is enough.
        if answer.good and self._proving:
            stranger = self._around.answerer(self._spec.question.port, status.control_group)
            if stranger:
                return Answer(WRONG, stranger)
        return answer

    def _progress(self, last: Answer, status: Status, now: float) -> None:
        age = now - self._watched.started
        text = last.text
        if last.good:
            text = f"{HEALTHY}, waiting for systemd to finish starting it ({status.sub})"
        until = span(self._spec.startup_deadline)
        self._around.events.wait("waiting", text, f"{text}, {span(round(age))} of {until}", age=age)

    def _fail(self, reason: str, *, died: bool = False) -> None:
        raise StartError(reason, invocation=self._watched.invocation, served=self._served, died=died)
