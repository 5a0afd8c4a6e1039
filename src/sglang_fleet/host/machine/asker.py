"""Who asks a server without making its caller wait: one question at a time."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Callable, Protocol

from .answers import WRONG, Answer, ask
from .client import short

if TYPE_CHECKING:
    from .answers import Question


class Asker(Protocol):
    """Asks one question at a time without making its caller wait."""

    def ask(self, question: Question) -> None:
        """Begin to ask; an older question is forgotten."""

    def answer(self) -> Answer | None:
        """Return the answer once it is there, and once only; None while it is not."""

    def healthy(self) -> bool:
        """Return whether /health of the last question was well; known before the answer, which also is the proof's."""

    def wait(self, seconds: float) -> bool:
        """Let time pass until the answer is there, at most so many seconds; returns whether it is there."""


class ThreadAsker:
    """Asks from a thread of its own, so that a server that hangs never hides that its process has died."""

    def __init__(self, asking: Callable[[Question, Callable[[], None]], Answer] = ask) -> None:
        self._asking = asking
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._answered = threading.Event()
        self._healthy = threading.Event()

    def ask(self, question: Question) -> None:
        """Begin to ask in a new thread; one that hangs in an older question keeps its own queue, which nobody reads."""
        answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        answered, healthy = threading.Event(), threading.Event()
        self._answers, self._answered, self._healthy = answers, answered, healthy

        def work() -> None:
            try:
                answers.put(self._asking(question, healthy.set))
            except Exception as error:  # noqa: BLE001 - a thread's exception would be lost: any is an answer
                answers.put(Answer(WRONG, f"asking failed: {short(error)}"))
            answered.set()

        threading.Thread(target=work, daemon=True).start()

    def answer(self) -> Answer | None:
        """Return the answer once it is there."""
        try:
            return self._answers.get_nowait()
        except queue.Empty:
            return None

    def healthy(self) -> bool:
        """Return whether /health was well, for all that the proof takes."""
        return self._healthy.is_set()

    def wait(self, seconds: float) -> bool:
        """Let time pass until the answer is there."""
        return self._answered.wait(seconds)
