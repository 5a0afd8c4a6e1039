"""Accounts: made where missing, left alone where there."""

from pathlib import Path

import pytest

from sglang_fleet.host.errors import HostError
from sglang_fleet.host.install import account
from tests.unit.host.stand_ins import Programs, collector


def known(monkeypatch: pytest.MonkeyPatch, *users: str, after: Path | None = None) -> None:
    def look(name: str) -> bool:
        return name in users or (after is not None and after.exists())

    monkeypatch.setattr(account, "_exists", look)


def test_a_missing_account_is_created_without_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(tmp_path / "bin", monkeypatch)
    programs.write("useradd", f"touch {tmp_path}/made")
    known(monkeypatch, after=tmp_path / "made")
    said, say = collector()
    account.run({"users": ["sglang"]}, say=say)
    (call,) = programs.calls("useradd")
    assert "--system --user-group --no-create-home --home-dir /var/lib/sglang --shell /usr/sbin/nologin" in call
    assert call.endswith(" sglang")
    assert said == ["created the system account sglang"]


def test_a_group_of_the_name_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(tmp_path / "bin", monkeypatch)
    programs.write("useradd", f"touch {tmp_path}/made")
    known(monkeypatch, after=tmp_path / "made")
    account.run({"users": ["daemon"]}, say=lambda _: None)
    assert "--gid daemon" in programs.calls("useradd")[0]


def test_root_and_known_accounts_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(tmp_path / "bin", monkeypatch)
    programs.write("useradd", "exit 1")
    known(monkeypatch, "sglang")
    account.run({"users": ["root", "sglang"]}, say=lambda _: None)
    assert programs.calls() == []


def test_a_race_that_another_run_won_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(tmp_path / "bin", monkeypatch)
    programs.write("useradd", f"touch {tmp_path}/made; exit 9")
    known(monkeypatch, after=tmp_path / "made")
    account.run({"users": ["sglang"]}, say=lambda _: None)


def test_useradds_words_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(tmp_path / "bin", monkeypatch)
    programs.write("useradd", "echo 'useradd: cannot lock /etc/passwd' >&2; exit 1")
    known(monkeypatch)
    with pytest.raises(HostError, match="cannot lock /etc/passwd"):
        account.run({"users": ["sglang"]}, say=lambda _: None)


@pytest.mark.parametrize("name", ["-x", "A", "a b", "a" * 33, ""])
def test_odd_names_are_refused(name: str) -> None:
    with pytest.raises(HostError, match="no name for a system account"):
        account.run({"users": [name]}, say=lambda _: None)
