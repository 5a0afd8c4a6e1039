"""Every point at which a controller can die or lose its connections, over a rollout of four hosts.

`SGLANG_FLEET_CRASH_POINTS=all` tries every point; without it every STRIDE-th, beginning with another each day.
"""

import datetime as dt
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import Host
from tests.lab.incidents import ask_for_new_release, assert_serves, wait_for_activation
from tests.lab.operator import Operator, Ran, proven_releases, running_release

CRASHING = Path(__file__).with_name("crashing.py")
ROLLOUT = {"waves": [1, "100%"]}
STRIDE = 8


@dataclass
class Crashing(Operator):
    """An operator whose controller meets its fate at a point."""

    where: str = "-"
    how: str = "killed"

    @property
    def log(self) -> Path:
        """The points that the last run passed."""
        return self.folder / "points"

    def command(self, *arguments: str, script: str = "deploy.py") -> list[str]:
        """As `Operator.command`, under watch."""
        return [
            sys.executable,
            "-P",
            str(CRASHING),
            str(self.log),
            self.where,
            self.how,
            "fleet.py",
            script,
            *arguments,
        ]

    def roll_out(self, *, where: str) -> Ran:
        """One run that meets its fate there."""
        self.log.write_text("")
        self.where = where
        return self.deploy()

    @property
    def passed(self) -> list[str]:
        """The names of the points, in order."""
        return self.log.read_text().splitlines()


def chosen(points: list[str]) -> list[str]:
    """All of them if that is asked for; else some, in time all."""
    if os.environ.get("SGLANG_FLEET_CRASH_POINTS") == "all":
        return points
    return points[dt.datetime.now(tz=dt.UTC).timetuple().tm_yday % STRIDE :: STRIDE]


def assert_invariants(hosts: list[Host], *, old: dict[str, str | None], point: str) -> None:
    """Each host serves the release that it has proven last, and the canary is the first to have the new one."""
    for host in hosts:
        wait_for_activation(host)
        assert_serves(host, proven_releases(host)[-1])
    changed = [host.name for host in hosts if running_release(host) != old[host.name]]
    assert not changed or hosts[0].name in changed, f"{point}: {changed} changed before the canary"


def say(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Print a line for whoever watches: which points were tried is what one wants to know."""
    with capsys.disabled():
        print(f"\n{text}", end="", flush=True)  # noqa: T201 - see above


@pytest.mark.parametrize("how", ["killed", "cut"])
def test_f24_f35_f44_at_whatever_point_the_controller_is_cut_off_hosts_serve_and_the_next_run_ends_it(
    serving: Operator, tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = serving.lab.hosts
    folder = tmp_path / "crashing"
    folder.mkdir()
    operator = Crashing(serving.lab, folder, how=how)
    ask_for_new_release(operator, rollout=ROLLOUT)
    first = operator.roll_out(where="-")
    assert first.status == 0, first.text
    points = operator.passed
    tried = chosen(points)
    missed = []
    for point in tried:
        old = {host.name: running_release(host) for host in hosts}
        ask_for_new_release(operator, rollout=ROLLOUT)
        cut_off = operator.roll_out(where=point)
        met = point in operator.passed
        say(capsys, f"{how} at: {point}{'' if met else ' (not met again)'}")
        if not met:
            missed.append(point)  # a line that is said only when something takes long
        elif how == "killed":
            assert cut_off.status < 0, f"{point}: {cut_off.text}"
        assert_invariants(hosts, old=old, point=point)
        done = operator.roll_out(where="-")
        assert done.status == 0, f"{point}: {cut_off.text}\nthe next run:\n{done.text}"
        new = {running_release(host) for host in hosts}
        assert len(new) == 1, point
        assert not new & set(old.values()), point
    say(capsys, f"controller {how} at {len(tried)} of {len(points)} points, {len(missed)} of them not met again")
    assert len(missed) <= len(tried) // 3, missed
