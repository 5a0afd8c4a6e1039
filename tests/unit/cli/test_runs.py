"""`plan`, `apply` and `rollback`: what they have pyinfra do, and what they end with."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

from roles.options import Options
from roles.run import Finished
from sglang_fleet.cli.common import problem_json
from sglang_fleet.problems import Problem
from sglang_fleet.rollout import Outcome, Rollout, Verdict
from sglang_fleet.saved_plan import Origin, SavedPlan

Run = Callable[..., Result]


@dataclass
class Runs:
    """Stands for `roles.run.run`: ends as it is told, and keeps what it was asked."""

    finished: Finished
    inventory: str = ""
    script: Path = field(default_factory=Path)
    folder: Path = field(default_factory=Path)
    arguments: Sequence[str] = ()
    options: Options = field(default_factory=Options)
    keeps_plans: bool = True

    def __call__(self, inventory: str, script: Path, **asked: Any) -> Finished:
        self.inventory, self.script = inventory, script
        self.folder, self.arguments, self.options = asked["folder"], asked["arguments"], asked["options"]
        if self.options.plan_to is not None and self.keeps_plans:
            saved(origin=self.options.origin or Origin()).write(self.options.plan_to)
        return self.finished


def saved(**keys: Any) -> SavedPlan:
    return SavedPlan(made_at="2026-11-29T16:15:00+00:00", salt="s", hosts={}, **keys)


def finished(status: int = 0, *, busy: Sequence[str] = (), verdicts: dict[str, Verdict] | None = None) -> Finished:
    rollout = Rollout(())
    rollout.verdicts.update(verdicts or {})
    fleet: Any = SimpleNamespace(busy=busy, hosts=("gpu-1", "gpu-2"), rollout=rollout)
    return Finished(status, fleet)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, deployment: Path) -> Runs:
    """What pyinfra was made to do in the deployment folder; it ends well, with nothing to do."""
    fake = Runs(finished(), folder=deployment)
    monkeypatch.setattr("roles.run.run", fake)
    return fake


# --- plan


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        (finished(), 0),
        (finished(busy=["gpu-1"]), 2),
        (finished(1), 1),
        (finished(1, busy=["gpu-1"]), 1),
        (finished(130, busy=["gpu-1"]), 130),
    ],
)
def test_f46_plan_ends_with_2_for_changes_and_with_1_for_errors_also_beside_changes(
    run: Run, runs: Runs, ended: Finished, status: int
) -> None:
    runs.finished = ended
    assert run("plan", "inventory/prod.py").exit_code == status


def test_plan_looks_and_asks_nobody(run: Run, runs: Runs, deployment: Path) -> None:
    run("plan", "inventory/prod.py", "--limit", "gpu-1", "--data", "cuda.version=13.0", "-v", "--", "--sudo")
    assert (runs.inventory, runs.script, runs.folder) == ("inventory/prod.py", Path("deploy.py"), deployment)
    asked = ["--dry", "-y", "--diff", "--limit", "gpu-1", "--data", "cuda.version=13.0", "-v", "--sudo"]
    assert list(runs.arguments) == asked
    assert runs.options == Options()


def test_a_brief_plan_has_no_differences(run: Run, runs: Runs) -> None:
    run("plan", "--brief")
    assert "--diff" not in runs.arguments


def test_help_says_what_a_brief_plan_leaves_out(run: Run) -> None:
    said = " ".join(run("plan", "--help").stdout.split())
    assert "--diff / --brief Show differences with the lines around them" in said
    assert "or the changed lines alone, no notes" in said


def test_a_plan_is_kept_with_where_it_comes_from_and_no_value_of_data(run: Run, runs: Runs, deployment: Path) -> None:
    runs.finished = finished(busy=["gpu-1"])
    result = run("plan", "--out", "plan.json", "--limit", "k26", "--data", "services.k26.env.TOKEN=poison-0f3a")
    kept = SavedPlan.read(deployment / "plan.json")
    assert kept.origin.inventory == "inventory/prod.py"
    assert kept.origin.folder == str(deployment)
    assert (kept.origin.limit, kept.origin.data) == (["k26"], ["services.k26.env.TOKEN"])
    assert "@" in kept.origin.by
    assert "poison" not in (deployment / "plan.json").read_text()
    assert "`sglang-fleet apply plan.json` applies this plan" in result.stderr
    assert result.stdout == ""


def test_in_json_a_plan_is_what_its_file_would_hold_and_no_file_stays(run: Run, runs: Runs, deployment: Path) -> None:
    before = sorted(deployment.iterdir())
    shown = json.loads(run("plan", "--json").stdout)
    assert shown["kind"] == "sglang-fleet plan"
    assert shown["origin"]["inventory"] == "inventory/prod.py"
    assert sorted(deployment.iterdir()) == before
    assert runs.options.plan_to is not None
    assert not runs.options.plan_to.exists()


@pytest.mark.parametrize(("status", "why"), [(0, "names no host"), (1, "why stands above")])
@pytest.mark.parametrize("command", [["plan"], ["apply", "inventory/prod.py", "-y"], ["rollback", "gpu-1", "-y"]])
def test_a_run_that_looked_at_no_host_is_an_error(
    run: Run, runs: Runs, command: list[str], status: int, why: str
) -> None:
    runs.finished = Finished(status, None)
    result = run(*command)
    assert result.exit_code == 1
    assert why in result.stderr


PROBLEM = Problem(Path("group_vars/all.yml"), 3, "services.k26.args.port", "expects a whole number", "", ("gpu-1",))


@pytest.mark.parametrize(
    "command", [["plan"], ["apply", "inventory/prod.py", "-y"], ["rollback", "inventory/prod.py", "-y"]]
)
def test_in_json_errors_in_the_settings_stand_on_standard_output(
    run: Run, runs: Runs, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.finished = finished(1)
    monkeypatch.setattr(runs.finished.fleet, "problems", [PROBLEM], raising=False)
    runs.keeps_plans = False
    result = run(*command, "--json")
    shown = json.loads(result.stdout)
    assert (result.exit_code, shown["status"]) == (1, 1)
    assert shown["problems"] == [problem_json(PROBLEM)]


def test_in_json_a_plan_that_there_is_none_of_says_so(run: Run, runs: Runs) -> None:
    runs.finished, runs.keeps_plans = finished(1), False
    shown = json.loads(run("plan", "--json").stdout)
    assert shown == {"status": 1, "error": "There is no plan: why stands on standard error."}


@pytest.mark.parametrize("command", [["plan"], ["apply", "inventory/prod.py", "-y"], ["rollback", "gpu-1", "-y"]])
def test_in_json_an_inventory_with_an_error_is_told_with_what_it_is(run: Run, runs: Runs, command: list[str]) -> None:
    runs.finished = Finished(1, None, "inventory/prod.py:3: invalid syntax")
    result = run(*command, "--json")
    assert json.loads(result.stdout) == {"status": 1, "error": "inventory/prod.py:3: invalid syntax"}


# --- apply


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 130])
def test_f46_apply_ends_as_the_run_did(run: Run, runs: Runs, status: int) -> None:
    runs.finished = finished(status)
    assert run("apply", "inventory/prod.py", "-y").exit_code == status


def test_apply_says_yes_only_when_it_was_told_so(run: Run, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sglang_fleet.cli.apply.confirm_on_terminal", lambda **_: None)
    run("apply", "inventory/prod.py", "--pause-after", "canary", "--resume")
    assert "-y" not in runs.arguments
    assert runs.options == Options(pause_after="canary", resume=True)
    run("apply", "inventory/prod.py", "-y")
    assert list(runs.arguments) == ["-y"]


def test_a_pause_that_makes_no_sense_is_refused(run: Run, runs: Runs) -> None:
    result = run("apply", "inventory/prod.py", "-y", "--pause-after", "never")
    assert result.exit_code == 1
    assert "canary, or the number of a wave" in result.stderr
    assert runs.inventory == ""


def test_in_json_apply_says_how_each_host_ended(run: Run, runs: Runs) -> None:
    verdicts = {"gpu-1": Verdict(Outcome.PROVEN, release="k26 4f0c", seconds=12.0)}
    runs.finished = finished(0, verdicts=verdicts)
    shown = json.loads(run("apply", "inventory/prod.py", "-y", "--json").stdout)
    assert shown["status"] == 0
    assert shown["hosts"] == {"gpu-1": {"outcome": "proven", "reason": "", "release": "k26 4f0c", "seconds": 12.0}}


# In a process of its own, which it ends: Ctrl-C while a class of pydantic's is made, which makes of an exception there
# one of its own; and once more when all that is left is to end.
INTERRUPTED_WHILE_LOADING = """
import atexit, os, signal, sys
import pydantic
from sglang_fleet.cli import group

class Interrupts:
    @classmethod
    def __get_pydantic_core_schema__(cls, *_):
        os.kill(os.getpid(), signal.SIGINT)
        return {{"type": "int"}}

def run(*_, **__):
    if {early}:
        pydantic.create_model("Model", field=(Interrupts, ...))
    sys.exit(3)

import roles.run
roles.run.run = run
atexit.register(os.kill, os.getpid(), signal.SIGINT)
group(["apply", "inventory/prod.py", "-y"])
"""


@pytest.mark.parametrize(("early", "status", "said"), [(True, 130, "\ninterrupted\n"), (False, 3, "")])
def test_f46_ctrl_c_outside_of_a_run_ends_with_130_and_changes_no_status_at_the_very_end(
    deployment: Path, status: int, said: str, *, early: bool
) -> None:
    program = [sys.executable, "-c", INTERRUPTED_WHILE_LOADING.format(early=early)]
    ended = subprocess.run(program, cwd=deployment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (status, said)


# --- apply a plan


def test_a_plan_is_applied_where_it_was_made_to_the_hosts_it_is_for_and_asks_nobody(
    run: Run, runs: Runs, deployment: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    origin = Origin(inventory="inventory/prod.py", folder=str(deployment), limit=["gpu-1"], by="anna@desk")
    saved(origin=origin).write(elsewhere / "plan.json")
    monkeypatch.chdir(elsewhere)
    result = run("apply", "plan.json", "--pause-after", "1")
    assert result.exit_code == 0, result.stderr
    assert (runs.inventory, runs.folder) == ("inventory/prod.py", deployment)
    assert list(runs.arguments) == ["-y", "--limit", "gpu-1"]
    assert runs.options == Options(pause_after="1", saved=saved(origin=origin))
    assert "made 2026-11-29T16:15:00+00:00 by anna@desk" in " ".join(result.stderr.split())


def test_a_plan_of_another_machine_is_applied_in_the_current_folder(run: Run, runs: Runs, deployment: Path) -> None:
    saved(origin=Origin(inventory="inventory/prod.py", folder="/nowhere/here")).write(deployment / "plan.json")
    run("apply", "plan.json")
    assert runs.folder == deployment


@pytest.mark.parametrize(
    ("planned", "given", "why"),
    [
        (["cuda.version"], [], "made with --data cuda.version: give the same values again"),
        ([], ["cuda.version=13.0"], "made without --data cuda.version"),
    ],
)
def test_a_plan_needs_the_data_that_it_was_made_with(
    run: Run, runs: Runs, deployment: Path, planned: list[str], given: list[str], why: str
) -> None:
    origin = Origin(inventory="inventory/prod.py", folder=str(deployment), data=planned)
    saved(origin=origin).write(deployment / "plan.json")
    result = run("apply", "plan.json", *(word for override in given for word in ("--data", override)))
    assert result.exit_code == 1
    assert why in " ".join(result.stderr.split())
    assert runs.inventory == ""


def test_a_plan_cannot_be_limited(run: Run, runs: Runs, deployment: Path) -> None:
    saved(origin=Origin(folder=str(deployment))).write(deployment / "plan.json")
    result = run("apply", "plan.json", "--limit", "gpu-1")
    assert result.exit_code == 1
    assert "a plan says itself which hosts it is for" in result.stderr
    assert runs.inventory == ""


@pytest.mark.parametrize(("text", "why"), [(None, "cannot be read"), ("{}", "is no plan"), ("{", "is no plan")])
def test_a_file_that_is_no_plan_is_refused(run: Run, runs: Runs, deployment: Path, text: str | None, why: str) -> None:
    if text is not None:
        (deployment / "plan.json").write_text(text)
    result = run("apply", "plan.json")
    assert result.exit_code == 1
    assert why in " ".join(result.stderr.split())
    assert "Nothing was changed." in " ".join(result.stderr.split())
    assert runs.inventory == ""


# --- rollback


def test_a_rollback_needs_no_settings(
    run: Run, runs: Runs, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("bare"))
    runs.finished = finished(3)
    assert run("rollback", "gpu-1,gpu-2", "-y", "--release", "4f0c2a9d1b7e63a8").exit_code == 3
    assert runs.inventory == "gpu-1,gpu-2"
    assert runs.script.name == "rollback.py"
    assert runs.options == Options(release="4f0c2a9d1b7e63a8")
