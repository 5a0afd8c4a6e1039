"""The file: what is written is read back, whatever the releases have in common."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sglang_fleet.catalog import store
from tools.catalogue import file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KNOWN = ("0.5.5", "0.5.5.post1", "0.5.9", "0.5.10", "0.6.0")
rows = st.lists(
    st.fixed_dictionaries({"flag": st.sampled_from(["--a", "--b", "--c-d"]), "default": st.integers(0, 2)}),
    unique_by=lambda row: str(row["flag"]),
).map(lambda found: sorted(found, key=lambda row: str(row["flag"])))


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "arguments.json"
    monkeypatch.setattr(store, "DATA", path)
    monkeypatch.setattr(file, "DATA", path)
    forget()
    yield path
    forget()


def forget() -> None:
    store._file.cache_clear()  # noqa: SLF001 - the file changes below it
    store.accepted.cache_clear()


def written(path: Path, releases: dict[str, list[dict[str, Any]]]) -> str:
    path.write_text(file.text({version: ("0" * 64, found) for version, found in releases.items()}))
    forget()
    return path.read_text()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(st.sampled_from(KNOWN), rows, min_size=1))
def test_what_is_written_is_read_back(own_file: Path, releases: dict[str, list[dict[str, Any]]]) -> None:
    text = written(own_file, releases)
    assert store.versions() == tuple(version for version in KNOWN if version in releases)
    for version, found in releases.items():
        assert store.entries(version) == found
    assert file.text(file.read()) == text


def test_without_a_file_there_are_no_releases(own_file: Path) -> None:
    assert not own_file.exists()
    assert file.read() == {}


def test_one_row_of_several_releases_is_one_line(own_file: Path) -> None:
    row = {"flag": "--a"}
    text = written(own_file, {"0.5.5": [row], "0.5.9": [], "0.5.10": [row], "0.6.0": [row]})
    assert json.loads(text)["arguments"] == [{"flag": "--a", "in": "0.5.5, 0.5.10-"}]
    assert '\n{"flag": "--a", "in": "0.5.5, 0.5.10-"}\n' in text


def test_a_new_release_changes_only_the_lines_of_what_it_changes(own_file: Path) -> None:
    old = written(own_file, {"0.5.5": [{"flag": "--a"}], "0.5.9": [{"flag": "--a"}, {"flag": "--b"}]})
    new = written(own_file, {version: store.entries(version) for version in store.versions()} | {
        "0.5.10": [{"flag": "--a"}, {"flag": "--b", "default": 1}]
    })  # fmt: skip
    gone, added = set(old.splitlines()) - set(new.splitlines()), set(new.splitlines()) - set(old.splitlines())
    assert {line for line in gone if "flag" in line} == {'{"flag": "--b", "in": "0.5.9-"}'}
    assert {line.rstrip(",") for line in added if "flag" in line} == {
        '{"flag": "--b", "in": "0.5.9"}',
        '{"flag": "--b", "in": "0.5.10-", "default": 1}',
    }
