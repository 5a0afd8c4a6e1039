"""Reading secrets: from three places, and never a word of what was found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_fleet.secret_values import SecretUnavailable, fingerprint, read_secret
from sglang_fleet.spec import SecretSource

POISON = "poison-5ecret"


def read(folder: Path, *, name: str = "api_key", **source: str) -> str:
    return read_secret(SecretSource.model_validate(source), name=name, folder=folder)


def refused(folder: Path, *, name: str = "api_key", **source: str) -> str:
    with pytest.raises(SecretUnavailable) as error:
        read(folder, name=name, **source)
    assert error.value.fix
    told = f"{error.value} {error.value.fix} {error.value!r} {error.value.__cause__!r}"
    assert POISON not in told
    return str(error.value)


def test_from_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K", POISON)
    assert read(tmp_path, env="K") == POISON


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_not_set(value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("K", raising=False)
    if value is not None:
        monkeypatch.setenv("K", value)
    assert refused(tmp_path, env="K") == "the environment variable K is not set"


def test_from_a_file_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{POISON}\r\n")
    assert read(tmp_path, file="key") == POISON


def test_from_a_file_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(POISON)
    assert read(Path("/"), file=str(tmp_path / "key")) == POISON
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read(Path("/nowhere"), file="~/key") == POISON


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert refused(tmp_path, file="key") == f"{tmp_path}/key cannot be read: No such file or directory"
    assert refused(tmp_path, file="~no-such-account/key").endswith("No such file or directory")
    (tmp_path / "key").write_bytes(f"{POISON}\xff".encode("latin-1"))
    assert refused(tmp_path, file="key") == f"{tmp_path}/key cannot be read: not UTF-8 text"
    (tmp_path / "key").write_text("\n")
    assert refused(tmp_path, file="key") == f"{tmp_path}/key is empty"
    (tmp_path / "folder").mkdir()
    assert refused(tmp_path, file="folder") == f"{tmp_path}/folder cannot be read: Is a directory"


def test_from_a_command_without_a_shell(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{POISON}\n")
    assert read(tmp_path, command="cat key") == POISON
    assert read(tmp_path, command="printf '%s' '$HOME; x'") == "$HOME; x"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"sh -c 'echo {POISON}; echo {POISON} >&2; exit 3'", "the command sh ended with status 3 and an answer"),
        (f"sh -c 'echo {POISON} >&2'", "the command sh ended with status 0 and no answer"),
        (f"no-such-program-{0} {POISON}", "there is no command no-such-program-0 to run"),
        (f"cat 'open {POISON}", "the command has a quote that is never closed"),
        (f"printf '%b' '{POISON}\\0377'", "the command printf did not answer with UTF-8 text"),
        (f"printf '{POISON}\\n{POISON}'", "the secret has more than one line"),
    ],
)
def test_a_command_that_fails(command: str, said: str, tmp_path: Path) -> None:
    assert refused(tmp_path, command=command) == said


def test_a_value_that_no_server_could_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(f"{POISON}\ufffe")
    assert refused(tmp_path, file="key") == "the secret is not UTF-8 text"
    monkeypatch.setitem(os.environ, "K", os.fsdecode(POISON.encode() + b"\xff"))
    assert refused(tmp_path, env="K") == "the secret is not UTF-8 text"
    monkeypatch.setenv("K", f"-{POISON}")
    assert refused(tmp_path, env="K") == "the secret begins with -, which SGLang takes for an option"
    assert read(tmp_path, env="K", name="HF_TOKEN") == f"-{POISON}"


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    script = "import sys; from sglang_fleet.secret_values import fingerprint; print(fingerprint('api_key', 'x'))"
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == fingerprint("api_key", "x")


def test_a_fingerprint_depends_on_the_name() -> None:
    assert fingerprint("api_key", "x") != fingerprint("admin_api_key", "x")


@settings(max_examples=20, deadline=None)  # it is slow on purpose
@given(st.text(st.characters(codec="utf-8"), min_size=6), st.text(st.characters(codec="utf-8"), min_size=6))
def test_a_fingerprint_tells_values_apart_and_shows_nothing_of_them(one: str, other: str) -> None:
    assert (fingerprint("k", one) == fingerprint("k", other)) is (one == other)
    assert one not in fingerprint("k", one)
