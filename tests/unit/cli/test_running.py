"""What the commands that connect to hosts share: what they hand to pyinfra, and what they refuse before that."""

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from sglang_fleet.cli.common import Failed
from sglang_fleet.cli.running import Aim, aim, words

Run = Callable[..., Result]
CONNECTING = ["plan", "apply", "rollback", "history", "unlock"]


def test_pyinfra_gets_its_words(deployment: Path) -> None:
    aimed = aim("inventory/prod.py", limit=["gpu-1", "k26"], data=["cuda.version=13.0"], verbosity=2, rest=["--sudo"])
    assert aimed == Aim(
        "inventory/prod.py",
        deployment,
        ("--limit", "gpu-1", "--limit", "k26", "--data", "cuda.version=13.0", "-v", "-v", "--sudo"),
    )


def test_the_only_inventory_is_taken_and_pyinfras_words_stay_words(deployment: Path) -> None:
    assert aim(None) == Aim("inventory/prod.py", deployment)
    assert aim("--sudo", rest=["--ssh-user", "deploy"]) == Aim(
        "inventory/prod.py", deployment, ("--sudo", "--ssh-user", "deploy")
    )


def test_from_elsewhere_the_inventory_is_named_as_in_its_folder(
    deployment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = deployment / "docs"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert aim("../inventory/prod.py") == Aim("inventory/prod.py", deployment)


def test_without_settings_only_what_needs_none_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert aim("gpu-1,gpu-2", needs_settings=False) == Aim("gpu-1,gpu-2", tmp_path)
    with pytest.raises(Failed, match="has no group_vars/"):
        aim("gpu-1,gpu-2")


def test_the_folders_own_job_goes_before_the_products(tmp_path: Path) -> None:
    products = Aim("gpu-1", tmp_path).script("deploy.py")
    assert products.is_absolute()
    assert "preflight.look()" in products.read_text()
    (tmp_path / "deploy.py").write_text("")
    assert Aim("gpu-1", tmp_path).script("deploy.py") == Path("deploy.py")
    assert Aim("gpu-1", tmp_path).script("rollback.py").is_absolute()


REASONS = {
    "--serial": "past the waves",
    "--no-wait": "would not wait",
    "--dry": "sglang-fleet plan",
    "-y": "before the --",
    "--yes": "before the --",
    "--json": "before the --",
    "--limit=gpu-1": "before the --",
    "--chdir=/": "deployment folder",
    "--debug-operations": "run nothing",
}


@pytest.mark.parametrize(("word", "reason"), REASONS.items())
def test_words_that_would_break_a_rollout_are_refused_with_the_reason(word: str, reason: str) -> None:
    with pytest.raises(click.UsageError, match=reason):
        words(rest=["--sudo", word])


def test_a_second_inventory_is_refused() -> None:
    with pytest.raises(click.UsageError, match="one inventory at a time"):
        words(rest=["inventory/other.py"])


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize("name", CONNECTING)
@pytest.mark.parametrize("more", [["--nonsense"], ["other.py"], ["--", "--serial"]])
def test_f46_a_command_line_that_makes_no_sense_ends_with_1_since_2_says_that_changes_are_pending(
    run: Run, name: str, more: list[str]
) -> None:
    result = run(name, "inventory/prod.py", *more)
    assert result.exit_code == 1
    assert result.stderr.startswith("Usage: ")
    assert result.stdout == ""


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize("name", ["apply", "rollback"])
def test_without_a_terminal_nobody_could_confirm(run: Run, name: str) -> None:
    result = run(name, "inventory/prod.py")
    assert result.exit_code == 1
    assert result.stderr == "There is no terminal to confirm on: add -y. Nothing was changed.\n"


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize("name", ["history", "unlock"])
def test_an_inventory_or_a_limit_that_names_no_host_is_an_error(
    run: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_host(*_: object, **__: object) -> int:
        return 0

    monkeypatch.setattr("roles.asking.ask_hosts", no_host)
    result = run(name, "inventory/prod.py", "--limit", "gpu-9", *(["-y"] if name == "unlock" else []))
    assert result.exit_code == 1
    assert result.stderr == "The inventory, or --limit, names no host. Nothing was changed.\n"


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize("command", ["plan", "apply", "rollback", "history", "unlock", "lint"])
def test_an_inventory_that_is_not_there_is_said_before_pyinfra_asks_for_a_host_of_that_name(
    run: Run, command: str
) -> None:
    result = run(command, "inventory/prd.py")
    assert result.exit_code == 1
    assert result.stderr == "inventory/prd.py is not there; there is inventory/prod.py\n"


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize("command", ["plan", "apply", "rollback", "history", "unlock"])
def test_in_json_what_makes_no_sense_stands_on_standard_output_too(run: Run, command: str) -> None:
    missing = run(command, "inventory/prd.py", "--json")
    assert json.loads(missing.stdout) == {
        "status": 1,
        "error": "inventory/prd.py is not there; there is inventory/prod.py",
    }
    nonsense = run(command, "--json", "--nonsense")
    assert (nonsense.exit_code, json.loads(nonsense.stdout)["status"]) == (1, 1)
    assert "--nonsense" in json.loads(nonsense.stdout)["error"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"kind": "sglang-fleet plan"}', "that is a saved plan, and `sglang-fleet apply plan.json` applies it"),
        ("[]", "an inventory is a Python file"),
        ("{", "an inventory is a Python file"),
    ],
)
def test_a_saved_plan_in_place_of_an_inventory_is_told_what_it_is_for(
    run: Run, deployment: Path, text: str, said: str
) -> None:
    (deployment / "plan.json").write_text(text)
    result = run("plan", "plan.json")
    assert result.exit_code == 1
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize(("typed", "meant"), [("aply", "Did you mean apply?"), ("zzz", "There are init, import,")])
def test_a_command_that_there_is_none_of_is_told_with_those_that_there_are(run: Run, typed: str, meant: str) -> None:
    result = run(typed)
    assert result.exit_code == 2
    assert f"There is no command {typed}. {meant}" in result.stderr
