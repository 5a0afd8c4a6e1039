"""With --json a command prints its result also where something keeps it from having one."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
COMMANDS = [("lint",), ("render", "gpu-1"), ("sizing",)]
PLACE = {"file", "line", "key", "message", "fix", "hosts", "source"}


def words(command: tuple[str, ...], inventory: str) -> list[str]:
    return [command[0], inventory, *command[1:]]


def problems(result: Result) -> list[dict[str, object]]:
    """What is wrong, where each command says what is wrong with the settings."""
    shown = json.loads(result.stdout)
    found: list[dict[str, object]] = shown["findings"] if "findings" in shown else shown["problems"]
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_an_inventory_that_is_not_there(run: Run, deployment: Path, command: tuple[str, ...]) -> None:
    assert deployment.exists()
    plain, result = run(*words(command, "inventory/prd.py")), run(*words(command, "inventory/prd.py"), "--json")
    assert plain.stdout == ""
    assert (result.exit_code, result.stderr) == (plain.exit_code, plain.stderr)
    (problem,) = problems(result)
    assert problem.keys() >= PLACE
    assert problem["message"] == "inventory/prd.py is not there; there is inventory/prod.py"
    assert (problem["file"], problem["line"]) == (None, None)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_inventory_with_an_error_in_it_is_told_with_its_place(
    run: Run, deployment: Path, command: tuple[str, ...]
) -> None:
    inventory = deployment / "inventory/prod.py"
    inventory.write_text("hosts = [\n  nobody,\n]\n")
    result = run(*words(command, "inventory/prod.py"), "--json")
    assert (result.exit_code, result.stderr) == (1, "inventory/prod.py:2: NameError: name 'nobody' is not defined\n")
    (problem,) = problems(result)
    assert (problem["file"], problem["line"]) == (str(inventory), 2)
    assert problem["message"] == "NameError: name 'nobody' is not defined"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("inventory", "text", "said"),
    [
        ("inventory/prod.py", "", "inventory/prod.py names no host"),
        ("group_vars", None, "group_vars is a folder, not an inventory: there is inventory/prod.py"),
    ],
)
def test_whatever_else_is_no_inventory(
    run: Run, deployment: Path, command: tuple[str, ...], inventory: str, text: str | None, said: str
) -> None:
    if text is not None:
        (deployment / inventory).write_text(text)
    result = run(*words(command, inventory), "--json")
    assert result.exit_code == 1
    assert [problem["message"] for problem in problems(result)] == [said]


def test_lint_says_it_as_a_finding_and_counts_it(run: Run, deployment: Path) -> None:
    assert deployment.exists()
    shown = json.loads(run("lint", "inventory/prd.py", "--json", "--fix", "--diff").stdout)
    (finding,) = shown.pop("findings")
    assert (finding["rule"], finding["severity"], finding["fixable"]) == ("SGL001", "error", False)
    assert shown == {
        "summary": {"hosts": 0, "errors": 1, "warnings": 0, "notes": 0, "waived": 0},
        "diff": "",
        "fixed": [],
        "not_fixed": [],
    }


@pytest.mark.usefixtures("deployment")
def test_render_and_sizing_have_no_services_then(run: Run) -> None:
    assert json.loads(run("sizing", "inventory/prd.py", "--json").stdout)["services"] == []
    shown = json.loads(run("render", "inventory/prd.py", "gpu-1", "--json").stdout)
    assert (shown["host"], shown["services"]) == ("gpu-1", [])


def test_render_tells_both_what_is_wrong_and_what_it_ends_by(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-1.yml").write_text("services: {k26: {extra_args: --log-requests}}")
    result = run("render", "inventory/prod.py", "gpu-1", "--json")
    assert result.exit_code == 1
    wrong, end = problems(result)
    assert (wrong["key"], wrong["line"]) == ("services.k26.extra_args", 1)
    assert end["message"] == result.stderr.splitlines()[-1] == "k26 cannot be rendered for gpu-1: see above"


@pytest.mark.parametrize("command", [["lint"], ["render"], ["sizing"]])
def test_a_command_line_that_makes_no_sense(run: Run, deployment: Path, command: list[str]) -> None:
    (deployment / "inventory/test.py").write_text("")
    for more in ([], ["--nonsense"], ["inventory/prod.py", "gpu-1", "--data", "port"]):
        plain, result = run(*command, *more), run(*command, *more, "--json")
        assert (result.exit_code, result.stderr) == (2, plain.stderr)
        (problem,) = problems(result)
        assert str(problem["message"]) in " ".join(result.stderr.split())
