"""How a rollout ended, as an operator reads it."""

import re
from collections.abc import Sequence

from sglang_fleet.report.lines import WIDTH, wrapped
from sglang_fleet.rollout import Outcome, Rollout, Verdict

_JOURNAL_LINES = 12
_NODE_INDENT = 2
_NOISE = re.compile(
    r"^(Starting |Started |Stopping |Stopped )|Warning: |warnings\.warn\(|nvidia-modprobe"
    r'|"[A-Z]+ \S+ HTTP/[0-9.]+" 2\d\d\b'
)
_NUMBERS = re.compile(r"[0-9.]+ s\b|pid [0-9]+")  # two hosts fail for the same reason, not in the same instant


def verdict_lines(rollout: Rollout, *, hosts: Sequence[str]) -> list[str]:
    """How a rollout ended, a line a host, and why for each that is not where it should be; the same why only once.

    The hosts of a replica of several stand together, under its name.
    """
    told = _Told(rollout)
    together = {host: replica for host in hosts if len((replica := rollout.replica_of(host)).hosts) > 1}
    width = max((len(host) + _NODE_INDENT * (host in together) for host in hosts), default=0)
    lines: list[str] = []
    for host in hosts:
        if host not in together:
            lines += told.lines(host, width=width)
        elif host == next(one for one in hosts if together.get(one) == together[host]):
            lines += wrapped(f"replica {together[host].name}")
            for node in (node for node in together[host].hosts if node in hosts):
                lines += told.lines(node, width=width, indent=_NODE_INDENT)
    return lines


class _Told:
    """What has been said of hosts, so that the same reason is said once."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._first: dict[tuple[Outcome, str], str] = {}

    def lines(self, host: str, *, width: int, indent: int = 0) -> list[str]:
        """One host's lines; its name and what stands before it take `width` columns."""
        verdict = self._rollout.verdicts.get(host, Verdict(Outcome.NOT_STARTED))
        first = self._first.setdefault((verdict.outcome, _NUMBERS.sub("", verdict.reason)), host)
        head = f"{' ' * indent}{host}".ljust(width) + f"  {'  '.join(self._facts(verdict))}"
        if verdict.outcome.good or not verdict.reason:
            return [head]
        if first != host:
            return [f"{head}  as {first}"]
        margin = " " * (width + 2)
        shown = [_cut(f"{margin}| {line}") for line in _telling(verdict.journal)]
        return [head, *wrapped(verdict.reason, indent=width + 2), *shown]

    def _facts(self, verdict: Verdict) -> list[str]:
        word, outcome = verdict.outcome.value, verdict.outcome
        # What a pause has not come to is as it shall be.
        calm = outcome.good or (outcome is Outcome.NOT_STARTED and self._rollout.paused_after is not None)
        return [
            word if calm else word.upper(),
            *([f"runs {verdict.release}"] if verdict.release else []),
            *([f"{verdict.seconds:.0f} s"] if verdict.seconds is not None else []),
        ]


def _telling(journal: Sequence[str]) -> Sequence[str]:
    """The last lines that say something: systemd's comings and goings, warnings and good answers do not."""
    return [line for line in journal if not _NOISE.search(line)][-_JOURNAL_LINES:] or journal[-_JOURNAL_LINES:]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
