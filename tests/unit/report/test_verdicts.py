"""How a rollout ended: a line a host, and the same reason once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.report import verdict_lines
from sglang_fleet.rollout import Outcome, Replica, Rollout, Verdict, Wave
from tests.unit.rollout.fleets import fleet

MARGIN = 4  # of roles/terminal.py


def told(verdicts: dict[str, Verdict], *groups: tuple[str, ...]) -> list[str]:
    replicas = tuple(Replica("+".join(group), group) for group in groups or [(host,) for host in verdicts])
    rollout = Rollout((Wave(1, 1, replicas),))
    for host, verdict in verdicts.items():
        rollout.record(host, verdict)
    return verdict_lines(rollout, hosts=list(verdicts))


def test_every_host_has_one_line_of_verdict() -> None:
    lines = told(
        {
            "h1": Verdict(Outcome.PROVEN, release="aaaa", seconds=12.4),
            "h10": Verdict(Outcome.UNCHANGED),
            "h2": Verdict(Outcome.RETURNED, "k26: exit status 2", ("line 1", "line 2"), "bbbb", 3.0),
        }
    )
    assert lines == [
        "h1   proven  runs aaaa  12 s",
        "h10  unchanged",
        "h2   RETURNED  runs bbbb  3 s",
        "     k26: exit status 2",
        "     | line 1",
        "     | line 2",
    ]


def test_a_host_that_was_never_started_says_so() -> None:
    assert verdict_lines(Rollout(()), hosts=["h1"]) == ["h1  NOT STARTED"]


@pytest.mark.parametrize(
    ("reasons", "second"),
    [
        (("exit status 2", "exit status 2"), ["h2  FAILED  as h1"]),
        (("no answer after 30 s", "no answer after 31.5 s"), ["h2  FAILED  as h1"]),
        (("exit status 2", "exit status 1"), ["h2  FAILED", "    exit status 1"]),
    ],
)
def test_the_same_reason_is_told_once(reasons: tuple[str, str], second: list[str]) -> None:
    lines = told({f"h{number}": Verdict(Outcome.FAILED, reason) for number, reason in enumerate(reasons, start=1)})
    assert lines[2:] == second


def test_good_answers_are_no_evidence_unless_there_is_nothing_else() -> None:
    good = 'INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK'
    failed = ("torch.OutOfMemoryError", *[good] * 20)
    assert "OutOfMemoryError" in told({"h1": Verdict(Outcome.RETURNED, "exited", failed)})[-1]
    assert "POST /generate" in told({"h1": Verdict(Outcome.RETURNED, "exited", (good,))})[-1]


def test_a_path_that_is_longer_than_a_line_stays_whole() -> None:
    path = "/var/lib/sglang-fleet/" + "x" * 80
    lines = told({"h1": Verdict(Outcome.RETURNED, f"release ea57 is not complete on this host: {path}")})
    assert any(line.strip() == path for line in lines)


def test_the_journal_shows_what_tells_something_and_says_where_it_is_cut() -> None:
    journal = ("Starting sglang-k26.service - K2.6...", "x.py:1: UserWarning: old", "error: unrecognized", "y" * 200)
    lines = told({"h1": Verdict(Outcome.RETURNED, "exited", journal)})
    assert not any("Starting" in line or "UserWarning" in line for line in lines)
    assert any("error: unrecognized" in line for line in lines)
    assert lines[-1].endswith("yyy…")


hosts = st.lists(st.from_regex(r"[a-z]{1,9}[0-9]{1,3}", fullmatch=True), min_size=1, max_size=30, unique=True)
sentences = st.lists(st.text("abc-.", min_size=1, max_size=15), min_size=1, max_size=30).map(" ".join)


@given(hosts, sentences, st.integers(1, 4))
def test_our_own_lines_fit_a_terminal(fleet: list[str], sentence: str, nodes: int) -> None:
    groups = [tuple(fleet[start : start + nodes]) for start in range(0, len(fleet), nodes)]
    verdicts = {host: Verdict(Outcome.FAILED, sentence, (sentence,), "a" * 16, 1800.0) for host in fleet}
    assert max(map(len, told(verdicts, *groups))) + MARGIN <= 80


def test_the_hosts_of_a_replica_stand_together_under_its_name() -> None:
    verdicts = {
        "h1": Verdict(Outcome.PROVEN, release="k26 aaaa"),
        "h2": Verdict(Outcome.RETURNED, "rank 1 left", release="k26 bbbb"),
        "h3": Verdict(Outcome.PROVEN),
        "h4": Verdict(Outcome.RETURNED, "rank 1 left", release="k26 cccc"),
    }
    assert told(verdicts, ("h1",), ("h4", "h2"), ("h3",)) == [
        "h1    proven  runs k26 aaaa",
        "replica h4+h2",
        "  h4  RETURNED  runs k26 cccc",
        "      rank 1 left",
        "  h2  RETURNED  runs k26 bbbb  as h4",
        "h3    proven",
    ]


def test_hosts_that_a_pause_has_not_come_to_are_no_failures() -> None:
    rollout = Rollout(fleet("h1 | h2"), pause_after="1")
    rollout.begin()
    rollout.record("h1", Verdict(Outcome.PROVEN))
    rollout.close(rollout.waves[0])
    rollout.finish()
    lines = verdict_lines(rollout, hosts=["h1", "h2"])
    assert lines[:2] == ["h1  proven", "h2  not started"]
    assert "paused" in " ".join(lines)


def test_a_host_that_was_skipped_says_why() -> None:
    lines = told({"h1": Verdict(Outcome.SKIPPED, "no connection could be made")})
    assert lines == ["h1  SKIPPED", "    no connection could be made"]
