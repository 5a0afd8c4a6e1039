"""The waves that docs/rollouts.md shows are those that are cut."""

import re
from pathlib import Path

from sglang_fleet.rollout import Replica, Wave, cut
from sglang_fleet.spec import Rollout as Settings

PAGE = Path(__file__).parents[3] / "docs/rollouts.md"
HOSTS = [f"gpu-{number:02}" for number in range(1, 11)]
TEN = [Replica(host, (host,)) for host in HOSTS]
DOWN = ["gpu-04", "gpu-05", "gpu-06"]


def test_the_tables_of_waves_show_what_is_cut() -> None:
    targets = Settings().targets
    canary = ["gpu-07"]
    assert tables(PAGE.read_text()) == [
        rows(cut(TEN, targets=targets)),
        rows(cut(TEN, targets=targets, canary=canary)),
        rows(cut(TEN, targets=targets, canary=canary, max_down=3)),
        rows(cut(TEN, targets=targets, canary=canary, max_down=3, down=DOWN)),
    ]


def test_a_resumed_rollout_goes_on_as_the_page_says() -> None:
    left = [replica for replica in TEN if replica.name != "gpu-07"]
    resumed = cut(left, targets=Settings().targets, canary=["gpu-07"], done=1)
    assert [hosts for _, hosts in rows(resumed)] == [["gpu-01", "gpu-02"], [*HOSTS[2:6], *HOSTS[7:]]]
    assert not any(wave.canary for wave in resumed)


def rows(waves: tuple[Wave, ...]) -> list[tuple[str, list[str]]]:
    return [(str(wave), list(wave.hosts)) for wave in waves]


def tables(page: str) -> list[list[tuple[str, list[str]]]]:
    """Each table whose rows begin with a wave: the wave and its hosts."""
    found = re.findall(r"(?:^\| wave \d.*\n)+", page, flags=re.MULTILINE)
    return [[row(line) for line in table.splitlines()] for table in found]


def row(line: str) -> tuple[str, list[str]]:
    wave, hosts, _ = (cell.strip() for cell in line.strip("|").split("|"))
    return wave, [host for part in hosts.split(", ") for host in named(part)]


def named(part: str) -> list[str]:
    """`gpu-04 to gpu-06` is three hosts."""
    first, _, last = part.partition(" to ")
    return HOSTS[HOSTS.index(first) : HOSTS.index(last or first) + 1]
