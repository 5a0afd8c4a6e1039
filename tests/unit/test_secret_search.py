"""How the tests against SGLang itself look for a secret in files that may be larger than the memory."""

import os
from pathlib import Path

import pytest

from lab import paths
from tests.lab.searching import spellings
from tests.real.hosts import poison

FORMS = [form.encode() for form in spellings("poison-0123456789ab")]


def test_a_text_is_found_wherever_pieces_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for form in FORMS:
        for piece in (1, 3, len(form) - 1, len(form), 64):
            for before in range(70):
                path.write_bytes(b"x" * before + form + b"y" * (before % 5))
                assert poison.Search(FORMS, piece).finds_any_in(path), (form, piece, before)
    path.write_bytes(FORMS[0][:-1] + b"x" + FORMS[0][1:])
    assert not poison.Search(FORMS, 7).finds_any_in(path)
    path.write_bytes(b"")
    assert not poison.Search(FORMS).finds_any_in(path)


def test_a_text_is_found_in_a_file_of_holes(tmp_path: Path) -> None:
    search, path = poison.Search(FORMS), tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(3 << 30)
        assert not search.finds_any_in(path)
        file.seek((2 << 30) + search.piece - 5)
        file.write(FORMS[0])
        file.flush()
        assert search.finds_any_in(path)


def test_what_is_on_both_sides_of_a_hole_is_not_one_text(tmp_path: Path) -> None:
    form = FORMS[0]
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.seek((1 << 20) - 6)
        file.write(form[:6])
        file.seek(2 << 20)
        file.write(form[6:])
    assert not poison.Search(FORMS).finds_any_in(path)


def test_fresh_files_are_those_of_no_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("own/labs/a/disk", "own/cache/x", "other/labs/b/disk", "mine/labs/c", "mine/old", "own/log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    os.utime(tmp_path / "mine/old", (1, 1))
    (tmp_path / "mine/link").symlink_to("labs/c")
    runtime = tmp_path / "run"
    (runtime / "b").mkdir(parents=True)
    (runtime / "b" / "owner").write_text(str(tmp_path / "other"))
    monkeypatch.setenv("SGLANG_FLEET_LAB", str(tmp_path / "own"))
    monkeypatch.setattr(poison, "RUNTIME", runtime)
    assert paths.state_folder() == tmp_path / "own"
    found = {str(path.relative_to(tmp_path)) for path in poison.fresh_files(tmp_path, since=1000)}
    assert found == {"mine/labs/c", "own/log", "run/b/owner"}
