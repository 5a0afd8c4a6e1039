"""What a pause says to type next can be typed, whichever way the run was started."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from roles.next_words import to_go_on, to_take_back
from roles.options import Options


def called(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pyinfra", *words])


def test_of_a_run_of_sglang_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    called(monkeypatch, "prod.py", "deploy.py", "-y", "--limit", "k26", "--data", "a.b=1", "-v", "--sudo")
    asked = Options(typed="fleet/prod.py", pause_after="canary")
    assert to_go_on(asked) == "sglang-fleet apply fleet/prod.py -y --limit k26 --data a.b=1 -v --resume -- --sudo"
    assert to_take_back(asked, ["h1", "h2"]) == ("sglang-fleet rollback fleet/prod.py --limit h1 --limit h2 -- --sudo")


def test_an_inventory_is_named_as_it_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    called(monkeypatch, "prod.py", "deploy.py")
    asked = Options(typed="fleet/prod.py", pause_after="canary")
    assert to_go_on(asked) == "sglang-fleet apply fleet/prod.py --resume"
    assert to_take_back(asked, ["h1"]) == "sglang-fleet rollback fleet/prod.py --limit h1"


def test_of_a_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prod.py").write_text("")
    called(monkeypatch, "prod.py", "deploy.py", "-y", "--limit", "k26", "--data", "a.b=1")
    saved: Any = SimpleNamespace()
    asked = Options(typed="plan.json", saved=saved, pause_after="1")
    assert to_go_on(asked) == "sglang-fleet apply plan.json -y --data a.b=1 --resume"
    assert to_take_back(asked, ["h1"]) == f"sglang-fleet rollback {tmp_path}/prod.py --limit h1"


def test_of_a_run_of_pyinfra(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--sudo", "inventory/prod.py", "deploy.py", "-y", "--data", "pause_after=canary", "--data=resume=true"]
    called(monkeypatch, *words, "--limit", "k26", "--data", "a.b=1")
    assert to_go_on(Options()) == (
        "pyinfra --sudo inventory/prod.py deploy.py -y --limit k26 --data a.b=1 --data resume=true"
    )
    assert to_take_back(Options(), ["h1"]) == ("pyinfra --sudo inventory/prod.py rollback.py --data a.b=1 --limit h1")
