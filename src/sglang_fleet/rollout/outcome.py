"""How a host ended, and what that says: of where it stands, of whether it serves, and of the release."""

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """What became of one host; each one's text is what the operator reads."""

    UNCHANGED = "unchanged"
    PROVEN = "proven"
    BACK = "back"
    RETURNED = "returned"
    TAKEN_BACK = "taken back"
    REMOVED = "removed"
    REFUSED = "refused"
    NOT_READY = "failed before the switch"
    REJECTED = "rejected"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    NOT_STARTED = "not started"

    @property
    def good(self) -> bool:
        """Whether the host is where the spec wants it."""
        return self in {Outcome.UNCHANGED, Outcome.PROVEN, Outcome.BACK}

    @property
    def serves(self) -> bool | None:
        """Whether the host serves after it; None when it was left as it was before.

        What is not known is not good: a host that cannot be reached or read counts as down.
        """
        if self.good or self in {Outcome.RETURNED, Outcome.TAKEN_BACK}:
            return True
        down = {Outcome.REMOVED, Outcome.FAILED, Outcome.UNREACHABLE, Outcome.SKIPPED, Outcome.UNKNOWN}
        return False if self in down else None

    @property
    def tried(self) -> bool:
        """Whether the host was changed, or may have been."""
        went_back = {Outcome.RETURNED, Outcome.TAKEN_BACK, Outcome.REMOVED}
        return self in {Outcome.PROVEN, Outcome.BACK, Outcome.FAILED, Outcome.UNKNOWN} | went_back

    @property
    def says_nothing(self) -> bool:
        """Whether it speaks neither for nor against the release: left as it was, not asked, or followed others."""
        left_alone = {Outcome.REFUSED, Outcome.NOT_READY, Outcome.NOT_STARTED}
        not_asked = {Outcome.UNREACHABLE, Outcome.SKIPPED, Outcome.UNKNOWN}
        return self in {Outcome.TAKEN_BACK} | left_alone | not_asked


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one host ended: the outcome, why in one line, and the last lines of its journal."""

    outcome: Outcome
    reason: str = ""
    journal: tuple[str, ...] = ()
    release: str = ""
    seconds: float | None = None
