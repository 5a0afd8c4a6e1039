"""Deployments in a folder of the test's own."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sglang_fleet.spec import Loaded, load
from tests.unit.lint.fleets import ALL, Load


@pytest.fixture
def fleet(tmp_path: Path) -> Load:
    """Load a folder of these files, by their names; `group_vars/all.yml` is ALL when not given."""

    def made(
        files: dict[str, str] | None = None,
        *,
        hosts: Sequence[str] = ("h1",),
        known: Sequence[str] | None = None,
        overrides: dict[str, object] | None = None,
    ) -> Loaded:
        for name, text in {"locks/sglang.txt": "", "group_vars/all.yml": ALL, **(files or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode())
        return load(
            folder=tmp_path,
            hosts={host: ["all"] for host in hosts},
            overrides=overrides or {},
            known_hosts=known or hosts,
            known_groups=["all"],
        )

    return made
