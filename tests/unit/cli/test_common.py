"""What all commands share: which inventory, which folder, and how an operator's mistakes are said."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from sglang_fleet.cli import common, group
from sglang_fleet.cli.common import Failed, load_settings, problem_json
from sglang_fleet.problems import Problem

Run = Callable[..., Result]
PROGRAM = [sys.executable, "-c", "from sglang_fleet.cli import main; main()"]
COMMANDS = group.list_commands(click.Context(group))


def test_the_settings_are_those_of_the_deployment(deployment: Path) -> None:
    settings = load_settings("inventory/prod.py")
    assert settings.folder == deployment
    assert settings.hosts == {"gpu-1": ["k26", "prod"], "gpu-2": ["k26", "prod"]}
    assert list(settings.loaded.deployments) == ["gpu-1", "gpu-2"]
    assert settings.loaded.problems == []


def test_overrides_are_read_as_pyinfra_reads_them(deployment: Path) -> None:  # noqa: ARG001  # its folder is used
    settings = load_settings("inventory/prod.py", data=["services.k26.args.port=31000", "ssh_user=me"])
    assert settings.loaded.deployments["gpu-1"].services["k26"].args.port == 31000
    assert settings.loaded.problems == []


def test_an_override_without_a_value_is_a_usage_error(deployment: Path) -> None:  # noqa: ARG001  # as above
    with pytest.raises(click.UsageError, match="port: write it as KEY=VALUE"):
        load_settings("inventory/prod.py", data=["port"])


def test_the_only_inventory_need_not_be_named(deployment: Path) -> None:
    (deployment / "inventory/_shared.py").write_text("")
    assert load_settings(None).inventory == "inventory/prod.py"


def test_of_several_inventories_one_has_to_be_named(deployment: Path) -> None:
    (deployment / "inventory/test.py").write_text("raise SystemExit('executed')")
    with pytest.raises(click.UsageError, match=r"There are inventory/prod\.py, inventory/test\.py"):
        load_settings(None)


def test_without_an_inventory_one_has_to_be_named(deployment: Path) -> None:
    (deployment / "inventory/prod.py").unlink()
    with pytest.raises(click.UsageError, match="there is none in inventory/ here"):
        load_settings(None)


def test_an_inventory_is_found_with_its_settings_from_another_folder(
    deployment: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    settings = load_settings(os.path.relpath(deployment / "inventory/prod.py"))
    assert settings.folder.samefile(deployment)
    assert settings.loaded.problems == []
    assert Path.cwd() == elsewhere


def test_settings_of_the_current_folder_win_as_they_do_for_pyinfra(deployment: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "group_vars").mkdir(parents=True)
    (other / "prod.py").write_text("hosts = ['h1']")
    assert load_settings("other/prod.py").folder == deployment


def test_a_folder_without_settings_is_no_deployment_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Failed, match=r"has no group_vars/: run in the deployment folder"):
        load_settings("h1,h2")


def test_an_unusable_inventory_is_said_in_one_line_without_a_trace(run: Run, deployment: Path) -> None:
    (deployment / "inventory/prod.py").write_text("hosts = [\n  nobody,\n]\n")
    result = run("render", "inventory/prod.py", "gpu-1")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == "inventory/prod.py:2: NameError: name 'nobody' is not defined\n"


def test_notes_tell_of_settings_that_belong_to_nobody_and_of_what_pyinfra_ignores(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-3.yml").write_text("{}")
    with (deployment / "inventory/prod.py").open("a") as file:
        file.write("numbers = [1, 2]\n")
    result = run("render", "inventory/prod.py", "gpu-1")
    assert result.exit_code == 0
    assert "note: host_vars/gpu-3.yml belongs to nobody in this inventory\n" in result.stderr
    assert 'note: Ignoring host group "numbers"' in result.stderr


def test_a_problem_in_json_has_every_part() -> None:
    problem = Problem(Path("group_vars/all.yml"), 3, "cuda", "is wrong", "correct it", ("h1",), "")
    assert problem_json(problem) == {
        "file": "group_vars/all.yml",
        "line": 3,
        "key": "cuda",
        "message": "is wrong",
        "fix": "correct it",
        "hosts": ["h1"],
        "source": "",
    }


def test_a_reader_that_goes_away_is_no_error_to_shout_about(deployment: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "render", "inventory/prod.py", "gpu-1"],
        cwd=deployment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stdout
        assert program.stderr
        program.stdout.close()
        assert program.stderr.read() == b""


def test_a_terminal_that_cannot_show_a_character_gets_its_code(deployment: Path) -> None:
    shown = subprocess.run(
        [*PROGRAM, "render", "inventory/prod.py", "gpu-1"],
        cwd=deployment,
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=True,
    )
    assert rb'api-key: "\u2022\u2022\u2022"' in shown.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_json(run: Run, name: str) -> None:
    shown = run(name, "--help").stdout
    assert "Example" in shown
    assert f"  sglang-fleet {name}" in shown
    assert "--json" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_list_of_commands_fits_a_terminal(run: Run) -> None:
    shown = run("--help").stdout
    assert all(f"\n  {name} " in shown for name in COMMANDS)
    assert "..." not in shown.replace("[ARGS]...", "")
    assert max(map(len, shown.splitlines())) <= 80


def test_commands_that_need_no_inventory_do_not_wait_for_pyinfra() -> None:
    program = "import sys, sglang_fleet.cli.init, sglang_fleet.cli.render as r; print('pyinfra' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"


def test_exit_statuses_are_what_scripts_expect(run: Run, deployment: Path) -> None:  # noqa: ARG001  # as above
    assert run("render", "inventory/prod.py", "gpu-1").exit_code == common.CLEAN == 0
    assert run("render", "inventory/prod.py", "nobody").exit_code == common.ERRORS == 1
    assert run("render").exit_code == 2
    assert run("no-such-command").exit_code == 2


@pytest.mark.parametrize(
    ("named", "what"),
    [
        ("group_vars/all.yml", "a file of settings"),
        ("inventory", "a folder"),
        (".", "a folder"),
        ("group_vars", "a folder"),
    ],
)
def test_what_is_no_inventory_is_named_with_those_there_are(run: Run, deployment: Path, named: str, what: str) -> None:
    assert deployment.exists()
    result = run("lint", named)
    assert result.exit_code == 1
    said = f"{named} is {what}, not an inventory: there is inventory/prod.py"
    assert " ".join(result.stderr.split()) == said


@pytest.mark.parametrize(
    "words", [["lint"], ["lint", "--json"], ["explain"], ["--help"], ["sizing", "inventory/prod.py"]]
)
def test_an_output_that_cannot_be_written_is_one_line(deployment: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, *words], cwd=deployment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "sglang-fleet: standard output cannot be written: no space left on device"
    assert "Traceback" not in done.stderr


def test_an_output_that_is_closed_is_one_line(deployment: Path) -> None:
    command = shlex.join([*PROGRAM, "lint", "--json"])
    done = subprocess.run(["sh", "-c", f"{command} >&-"], cwd=deployment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "sglang-fleet: standard output is closed\n")


def test_a_closed_standard_error_is_no_failure(deployment: Path) -> None:
    command = shlex.join([*PROGRAM, "explain"])
    done = subprocess.run(["sh", "-c", f"{command} 2>&-"], cwd=deployment, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout
