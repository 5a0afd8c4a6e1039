import subprocess

import pytest

from sglang_fleet.host.machine import verify as module
from sglang_fleet.host.machine.verify import complaints, options, verify

OUTPUT = """\
/run/v/k26.service:7: Unknown key name 'Foo' in section 'Service', ignoring.
/usr/lib/systemd/system/plymouth.service:3: Unit is old.
other.service: Command /x is not executable: No such file or directory
k26.service: Command /nope is not executable: No such file or directory
"""


def test_only_lines_about_this_unit_count() -> None:
    assert complaints(OUTPUT, unit_name="k26.service", folder="/run/v") == [
        "k26.service:7: Unknown key name 'Foo' in section 'Service', ignoring.",
        "k26.service: Command /nope is not executable: No such file or directory",
    ]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("systemd 252 (252.39-1~deb12u2)", ["--man=no", "--recursive-errors=no"]),
        ("systemd 249 (249.11-0ubuntu3)", ["--man=no"]),
        ("what", ["--man=no"]),
    ],
)
def test_options_fit_the_systemd(version: str, expected: list[str]) -> None:
    assert options(version) == expected


def fake(monkeypatch: pytest.MonkeyPatch, text: str, status: int) -> None:
    def run(arguments: list[str], **_more: object) -> subprocess.CompletedProcess[str]:
        done = "systemd 252" if "--version" in arguments else ""
        return subprocess.CompletedProcess(arguments, status, done, "" if done else text)

    monkeypatch.setattr(module, "run_program", run)


def test_silence_is_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, "/usr/lib/systemd/system/x.service:1: old\n", 0)
    assert verify(b"", "k26.service") == []


def test_a_failure_without_a_word_about_us_is_still_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, "Failed to initialize manager: Permission denied\n", 1)
    assert verify(b"", "k26.service") == ["Failed to initialize manager: Permission denied"]
    fake(monkeypatch, "", 1)
    assert verify(b"", "k26.service") == ["`systemd-analyze verify` exits 1"]


def test_a_systemd_that_cannot_be_asked_is_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_arguments: object, **_more: object) -> None:
        raise FileNotFoundError("systemd-analyze")

    monkeypatch.setattr(module, "run_program", run)
    assert "cannot be run" in verify(b"", "k26.service")[0]
