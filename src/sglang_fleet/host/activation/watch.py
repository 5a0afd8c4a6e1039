"""Watching one start: its process through systemd, and one question to it at a time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, NoReturn

from ..machine.answers import SILENT, WRONG, Answer
from ..machine.clock import span
from .start import StartError, death

if TYPE_CHECKING:
    from ..machine.answers import Proof
    from ..machine.units import Status
    from .gate_spec import GateSpec
    from .start import Surroundings, Watched

LONGEST_LOOK = 1.0
"""Seconds at most between two looks at the process."""

END_POLL = 0.1
"""Seconds between two looks whether a word has come: they cost next to nothing."""


class Watch:
    """The looks at one start, and the question that is out.

    Attributes:
        asked: the proof that the last question asked for; None for /health alone.
        served: whether it has answered, so that requests of others may be in flight.
    """

    def __init__(self, around: Surroundings, watched: Watched, spec: GateSpec, stop: Callable[[], str]) -> None:
        self.around = around
        self.watched = watched
        self.spec = spec
        self.asked: Proof | None = None
        self.served = False
        self._stop = stop
        self._asked_at: float | None = None
        self._patience = 0.0
        self._taken_at: float | None = None

    @property
    def busy(self) -> bool:
        """Whether a question is out."""
        return self._asked_at is not None

    def alive(self) -> Status:
        """Return the unit's status; StartError when the watched process is gone, or is to be given up."""
        status = self.around.manager.show(self.watched.unit)
        how = death(self.watched, status)
        if how:
            self.fail(how, died=True)
        why = self._stop()
        if why:
            self.fail(why)
        return status

    def ask(
        self,
        proof: Proof | None,
        *,
        health: bool = True,
        starting: bool = False,
        within: float | None = None,
    ) -> None:
        """Begin to ask; a proof may take what is left of the time, and a second of it at least.

        Args:
            proof: what is asked beside /health.
            health: whether /health is asked.
            starting: whether /ready may stand for /health, and a port nobody listens on yet is tried for an interval.
            within: the seconds that are left.
        """
        if proof is not None and within is not None and within < proof.seconds:
            proof = replace(proof, seconds=max(within, 1.0))
        opening = self.spec.interval if starting else 0.0
        question = replace(self.spec.question, proof=proof, health=health, ready=starting, opening=opening)
        self._asked_at = self.around.clock.monotonic()
        self._patience = question.patience
        self.asked = proof
        self.around.asker.ask(question)

    def collect(self, status: Status) -> Answer | None:
        """Return the answer when there is one, or when it is overdue; a stranger's answer is not ours."""
        if self._asked_at is None:
            return None
        answer = self.around.asker.answer()
        if answer is None:
            overdue = self.around.clock.monotonic() - self._asked_at
            if overdue < self._patience:
                return None
            answer = Answer(SILENT, f"no answer within {span(overdue)}")
        self._asked_at = None
        # While our process lives nobody can take its port: once more at each proof is enough.
        if answer.good and self.asked is not None:
            stranger = self._stranger(status)
            if stranger:
                return Answer(WRONG, stranger)
        return answer

    def healthy(self, status: Status) -> bool:
        """Return whether /health of the question that is out was well, though its proof is not answered yet."""
        return self.busy and self.around.asker.healthy() and not self._stranger(status)

    def refuse_a_taken_port(self, status: Status) -> None:
        """Give up a start whose port somebody else has had for a whole interval: SGLang hangs two minutes over that.

        It binds its port last of all, so that a port which was free before the switch may not be free any more.
        """
        port, now = self.spec.question.port, self.around.clock.monotonic()
        # Without its group the unit's own processes would look like strangers.
        holders = self.around.holders(port, status.control_group) if status.control_group else []
        if not holders:
            self._taken_at = None
        elif self._taken_at is None:
            self._taken_at = now
        elif now - self._taken_at >= self.spec.interval:
            self.fail(f"port {port} was taken by {holders[0]} while this server started")

    @property
    def look(self) -> float:
        """Seconds between two looks at most."""
        return min(self.spec.interval, LONGEST_LOOK)

    def pause(self, *, until: float = math.inf, over: Callable[[], bool] | None = None) -> None:
        """Let time pass until the next look, which comes sooner when the answer is there.

        Args:
            until: the moment of the clock at which there is something to do, if that comes sooner.
            over: whether what is waited for has come; then, too, the next look comes at once.
        """
        clock = self.around.clock
        until = min(until, clock.monotonic() + self.look)
        left = until - clock.monotonic()
        while left > 0:
            step = left if over is None else min(left, END_POLL)
            if self.busy:
                if self.around.asker.wait(step):
                    return
            else:
                clock.sleep(step)
            if over is not None and over():
                return
            left = until - clock.monotonic()

    def _stranger(self, status: Status) -> str:
        """Who answers on our port, when it is not our server."""
        return self.around.answerer(self.spec.question.port, status.control_group)

    def fail(self, reason: str, *, died: bool = False) -> NoReturn:
        """Give the start up."""
        raise StartError(reason, invocation=self.watched.invocation, served=self.served, died=died)
