from collections.abc import Callable
from pathlib import Path

import pytest

from sglang_fleet.problems import Problem
from sglang_fleet.spec import Loaded, load

EXAMPLE = Path(__file__).parents[3] / "group_vars/all.yml"
LOCK = "locks/sglang-0.5.23-cu130.txt"

Write = Callable[..., Loaded]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Load a project of these files; `group_vars__all` is `group_vars/all.yml`, by default the example's."""

    def written(
        *,
        hosts: tuple[str, ...] = ("h1",),
        overrides: dict[str, object] | None = None,
        groups: dict[str, list[str]] | None = None,
        beside: dict[str, dict[str, object]] | None = None,
        ordered: bool = True,
        **files: str,
    ) -> Loaded:
        (tmp_path / "locks").mkdir(exist_ok=True)
        (tmp_path / LOCK).write_text("sglang==0.5.23\n")
        for name, text in {"group_vars__all": EXAMPLE.read_text(), **files}.items():
            path = tmp_path / f"{name.replace('__', '/')}.yml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return load(
            folder=tmp_path,
            hosts={host: ["prod"] for host in hosts},
            overrides=overrides or {},
            groups=groups,
            ordered=ordered,
            inventory_data=beside,
        )

    return written


@pytest.fixture
def wrong(write: Write) -> Callable[..., Problem]:
    """The one problem of the example with these overrides."""

    def found(**overrides: object) -> Problem:
        loaded = write(overrides={name.replace("__", "."): value for name, value in overrides.items()})
        (problem,) = loaded.problems
        assert not loaded.deployments
        return problem

    return found
