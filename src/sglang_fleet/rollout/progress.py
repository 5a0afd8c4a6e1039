"""The deadline of progress: how long a rollout may go on without a further replica being proven."""

from dataclasses import dataclass, field

from sglang_fleet.spec.durations import written


@dataclass(slots=True)
class Progress:
    """Who was proven, and when the last one was; once the deadline is missed, it stays missed.

    Attributes:
        deadline: in seconds; None for none.
        missed: whether it has passed, as far as the times that were given show.
    """

    deadline: float | None
    missed: bool = False
    _since: float | None = None
    _proven: set[str] = field(default_factory=set)

    @property
    def why(self) -> str:
        """Why it is too late, in one line for the operator; empty while it is not."""
        if not self.missed or self.deadline is None:
            return ""
        return f"no further replica was proven for {written(self.deadline)}"

    def begin(self, now: float | None) -> None:
        """Start the clock; without a time there is none."""
        self._since = now

    def look(self, now: float | None) -> None:
        """See whether the deadline has passed."""
        if self.deadline is not None and self._since is not None and now is not None:
            self.missed = self.missed or now - self._since > self.deadline

    def proven(self, replica: str, now: float | None) -> None:
        """A replica was proven. Only its first time is progress: one that comes and goes extends nothing."""
        if replica not in self._proven and now is not None and self._since is not None:
            self._since = max(self._since, now)
        self._proven.add(replica)
