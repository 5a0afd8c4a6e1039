"""What is said at the end: the last line, and how each host ended, also where none was changed."""

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from roles import locks, waves
from sglang_fleet.rollout import Outcome, Replica, Rollout, Verdict, cut

HOSTS = ("h1", "h2", "h3", "h4")


def ended(verdicts: Mapping[str, Outcome], *, busy: tuple[str, ...] = HOSTS, pause: str = "") -> Any:  # noqa: ANN401
    """What of a fleet counts at the end of a run."""
    replicas = [Replica(name, (name,)) for name in HOSTS]
    rollout = Rollout(cut(replicas, targets=lambda total: [1, total]), pause_after=pause)
    for host, outcome in verdicts.items():
        rollout.record(host, Verdict(outcome, "why"))
    for wave in rollout.waves:
        rollout.close(wave)
    state = SimpleNamespace(failed_hosts=set(), inventory=SimpleNamespace(get_host=str))
    fleet = SimpleNamespace(rollout=rollout, hosts=HOSTS, busy=busy, waves=rollout.waves, halted="", state=state)
    if busy:
        rollout.finish()
    return fleet


RETURNED = {"h1": Outcome.RETURNED}
ENDS = [
    (RETURNED, "", "all 4 hosts run what was here before; look at h1: why stands above"),
    (
        {**RETURNED, "h2": Outcome.UNREACHABLE},
        "",
        "every host that was changed runs what was here before; look at h1, h2: why stands above",
    ),
    (
        {**dict.fromkeys(HOSTS, Outcome.PROVEN), "h4": Outcome.FAILED},
        "",
        "1 of 4 hosts is not where it should be; look at h4: why stands above",
    ),
    (
        dict.fromkeys(HOSTS, Outcome.REFUSED),
        "",
        "4 of 4 hosts are not where they should be; no host was changed; look at h1, h2, h3, h4: why stands above",
    ),
    ({"h1": Outcome.PROVEN}, "canary", "paused: 3 of 4 hosts have not begun"),
]


@pytest.mark.parametrize(("verdicts", "pause", "said"), ENDS)
def test_the_last_line_alarms_no_more_than_the_exit_status(
    verdicts: Mapping[str, Outcome], pause: str, said: str
) -> None:
    assert waves.last_word(ended(verdicts, pause=pause)) == said


@pytest.mark.parametrize(
    ("words", "busy", "is_told"), [(["-y"], (), True), (["--dry"], (), False), (["-y"], HOSTS, False)]
)
def test_where_every_host_is_refused_it_still_says_how_each_ended(
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    busy: tuple[str, ...],
    *,
    is_told: bool,
) -> None:
    monkeypatch.setattr(sys, "argv", ["pyinfra", "inventory/prod.py", "deploy.py", *words])
    monkeypatch.setattr(locks, "release", lambda _: None)
    lines: list[str] = []
    monkeypatch.setattr(waves, "heading", lines.append)
    monkeypatch.setattr(waves, "show", lines.extend)
    last: list[str] = []
    monkeypatch.setattr(waves, "say_at_the_end", last.append)
    fleet = ended(dict.fromkeys(HOSTS, Outcome.REFUSED), busy=busy)
    waves.tell_of_none(fleet)
    said = "\n".join(lines)
    assert ("How each host ended" in said) is is_told
    assert (said.count("REFUSED") == 4) is is_told
    assert bool(last) is is_told
