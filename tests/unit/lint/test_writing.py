"""Files of settings: shown without secrets, written at once."""

import os
import subprocess
from pathlib import Path

import pytest

from sglang_fleet.lint.bench import Change
from sglang_fleet.lint.writing import NotWrittenError, can_be_applied, diff, write
from sglang_fleet.masking import MASK

CHANGE = Change("a: 1\nb: 2\n", "a: 1\n")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "all.yml"
    path.write_text(CHANGE.before)
    return path


def test_the_new_text_is_written_and_nothing_is_left_beside_it(file: Path) -> None:
    write({file: CHANGE})
    assert file.read_text() == CHANGE.after
    assert list(file.parent.iterdir()) == [file]


def test_bytes_are_kept_as_they_are(file: Path) -> None:
    file.write_bytes("\ufeffa: 1\r\nb: ä\r\n".encode())
    write({file: Change("\ufeffa: 1\r\nb: ä\r\n", "\ufeffb: ä\r\n")})
    assert file.read_bytes() == "\ufeffb: ä\r\n".encode()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_the_mode_is_kept(file: Path, mode: int) -> None:
    file.chmod(mode)
    write({file: CHANGE})
    assert file.stat().st_mode & 0o7777 == mode


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "folder" / "link.yml"
    link.parent.mkdir()
    link.symlink_to(os.path.relpath(file, link.parent))
    write({link: CHANGE})
    assert link.is_symlink()
    assert file.read_text() == CHANGE.after


def test_a_file_that_somebody_changed_meanwhile_is_left_alone(file: Path) -> None:
    file.write_text("a: 3\n")
    with pytest.raises(NotWrittenError):
        write({file: CHANGE})
    assert file.read_text() == "a: 3\n"


def test_a_write_that_fails_leaves_the_old_text(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotWrittenError, match="no space"):
        write({file: CHANGE})
    assert file.read_text() == CHANGE.before
    assert list(file.parent.iterdir()) == [file]


def test_a_diff_names_the_file_and_shows_what_changes() -> None:
    assert diff("group_vars/all.yml", CHANGE).splitlines() == [
        "--- a/group_vars/all.yml",
        "+++ b/group_vars/all.yml",
        "@@ -1,2 +1 @@",
        " a: 1",
        "-b: 2",
    ]


@pytest.mark.parametrize(
    "secret",
    [
        "api_key: s3cr3t-value",
        "HF_TOKEN: 's3cr3t-value'",
        "HF_TOKEN: |\n  first line\n  s3cr3t-value",
        "db_password: {value: s3cr3t-value}",
        "api_keys:\n- s3cr3t-value",
        "x: --api-key s3cr3t-value",
        "extra_args: [--hf-token, s3cr3t-value]",
        "extra_args: ['--hf-token', 's3cr3t-value']",
        "extra_args: [\n  --hf-token,\n  s3cr3t-value]",
        "extra_args:\n- --hf-token\n- s3cr3t-value",
        "extra_args:\n- --hf-token\n- >-\n  first\n  s3cr3t-value",
        "extra_args: [--x, [--api-key, s3cr3t-value]]",
        "api_key: first\n  s3cr3t-value",
    ],
)
def test_a_diff_hides_secrets_also_beside_the_change(secret: str) -> None:
    text = f"{secret}\nb: 2\nc: 's3cr3t-value'\n" if "x:" not in secret else f"b: 2\n{secret}\n"
    shown = diff("all.yml", Change(text, text.replace("b: 2\n", "")))
    assert "-b: 2" in shown
    assert "s3cr3t-value" not in shown
    assert MASK in shown


def test_a_diff_cannot_move_the_terminals_cursor() -> None:
    assert "\x1b" not in diff("all.yml", Change("a: \x1b[2J\nb: 1\n", "a: \x1b[2J\n"))


def test_a_number_behind_a_telling_flag_is_a_secret_too_and_what_follows_is_not() -> None:
    text = "b: 2\nextra_args: [--api-key, 0123456, --flag, shown]\n"
    shown = diff("all.yml", Change(text, text.replace("b: 2\n", "")))
    assert "0123456" not in shown
    assert "--flag, shown]" in shown


def git_apply(folder: Path, patch: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["git", "apply", "-"], cwd=folder, input=patch.encode(), env={"PATH": os.environ["PATH"], "GIT_DIR": "none"},
        capture_output=True, check=False,
    )  # fmt: skip


MASKED = "api_key: leak\n"
PATCHED = [
    (f"{MASKED}a: 1\nb: 2\nc: 3\nd: 4\n{MASKED}e: 5\n", f"{MASKED}a: 1\nc: 3\nd: 4\n{MASKED}e: 5\n"),
    (f"a: 1\n{MASKED}b: 2\nc: 3\n{MASKED}", f"a: 1\n{MASKED}c: 3\n{MASKED}"),
    (f"a: 1\n{MASKED}b: 2\n", f"a: 1\n{MASKED}"),
    (f"a: 1\n{MASKED}", f"a: 1\n{MASKED}b: 2\n"),
    (f"a: 1\n{MASKED}c: 3\nd: 4\n", f"a: 1\n{MASKED}b: 2\nc: 3\nd: 4\n"),
    (f"b: 2\nc: 3\n{MASKED}c: 3\nb: 2\nd: 4\n", f"c: 3\n{MASKED}c: 3\nd: 4\n"),
    ("a: 1\nb: 2", "a: 1"),
    ("a: 1\nb: 2", "a: 1\n"),
    ("a: 1\nb: 2\nc: 3", "a: 1\nc: 3"),
    ("a: 1", "a: 1\nb: 2\n"),
    ("a: 1\n", "a: 1\nb: 2\n"),
    ("a: 1\r\nb: 2\r\nc: 3\r\n", "a: 1\r\nc: 3\r\n"),
    ("a: 1\t# tab\nb: 2\nc: ä\n", "a: 1\t# tab\nc: ä\n"),
    ("a: 1\n", ""),
]


@pytest.mark.parametrize(("before", "after"), PATCHED)
def test_a_diff_can_be_applied(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "all.yml").write_bytes(before.encode())
    assert can_be_applied(Change(before, after))
    applied = git_apply(tmp_path, diff("all.yml", Change(before, after)))
    assert applied.returncode == 0, applied.stderr
    file = tmp_path / "all.yml"
    assert (file.read_bytes() if file.exists() else b"") == after.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"a: 1\n{MASKED}", MASKED),  # a hunk needs a line below
        (f"{MASKED}b: 2\n", "b: 2\n"),
        (f"a: 1\n{MASKED}b: 2\nc: 3\n", f"{MASKED}c: 3\n"),
        ("a: \x07\nb: 2\n", "b: 2\n"),
    ],
)
def test_a_diff_that_cannot_be_applied_is_known(before: str, after: str) -> None:
    assert not can_be_applied(Change(before, after))
    assert "leak" not in diff("all.yml", Change(before, after))


def test_what_stands_beside_a_secret_in_braces_is_shown() -> None:
    text = "b: 2\na: {password: leak, endpoint: here}\n"
    assert f" a: {{password: {MASK}, endpoint: here}}" in diff("all.yml", Change(text, text.replace("b: 2\n", "")))


def test_files_are_written_all_or_none(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yml"
    other.write_text("changed: 1\n")
    with pytest.raises(NotWrittenError) as raised:
        write({file: CHANGE, other: CHANGE})
    assert raised.value.file == other
    assert file.read_text() == CHANGE.before
    assert sorted(tmp_path.iterdir()) == [file, other]


def test_what_was_replaced_already_goes_back(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.yml"
    other.write_text(CHANGE.before)
    replace = Path.replace

    def fails(self: Path, target: Path) -> Path:
        if target == other:
            raise PermissionError(13, "Permission denied")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(NotWrittenError, match="permission denied"):
        write({file: CHANGE, other: CHANGE})
    assert file.read_text() == other.read_text() == CHANGE.before
    assert sorted(tmp_path.iterdir()) == [file, other]
