"""The stand-in wheel is the same bytes whoever builds it, and the lab's lock names them."""

from __future__ import annotations

import email
import re
import zipfile
from pathlib import Path

from lab.standins.sglang import build, lock_text

ROOT = Path(__file__).parents[3]


def test_the_lock_names_the_wheel_that_is_built(tmp_path: Path) -> None:
    """When this fails: `python -m lab.standins.sglang --lock`."""
    assert (ROOT / "locks" / "lab-sglang-0.5.23.txt").read_text() == lock_text(build(tmp_path))


def test_two_builds_are_the_same_bytes(tmp_path: Path) -> None:
    first, second = build(tmp_path / "one"), build(tmp_path / "two")
    assert first.read_bytes() == second.read_bytes()


def test_version_and_marker_are_in_the_wheel(tmp_path: Path) -> None:
    plain, marked = build(tmp_path / "a", version="0.5.22"), build(tmp_path / "b", version="0.5.22", marker="two")
    assert plain.name == marked.name == "sglang-0.5.22-py3-none-any.whl"
    assert plain.read_bytes() != marked.read_bytes()
    with zipfile.ZipFile(marked) as archive:
        metadata = email.message_from_bytes(archive.read("sglang-0.5.22.dist-info/METADATA"))
        assert (metadata["Name"], metadata["Version"]) == ("sglang", "0.5.22")
        assert archive.read("sglang/_version.py").decode().splitlines()[2:] == [
            "__version__ = '0.5.22'",
            "MARKER = 'two'",
        ]


def test_nothing_the_product_installs_knows_the_stand_in() -> None:
    for folder in ("src", "roles"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not re.search(r"\bstand-?ins?\b|standin_", path.read_text(), re.IGNORECASE), path
