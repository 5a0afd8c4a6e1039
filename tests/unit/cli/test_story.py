"""The story, told by the commands alone: the old unit in, what is wrong with it and why, and the new unit out."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run

OLD = Path(__file__).parents[3] / "lab/story/sglang-k26.service"
HOST = "gpu-1.example.net"
# The unit that cured it, as somebody wrote it by hand then.
NEW = (
    "--model-path /root/models/Kimi-K2.6 --port 30001 --host 0.0.0.0 --tp-size 1 --pp-size 8 --pp-async-batch-depth 8 "
    "--mem-fraction-static 0.88 --context-length 32768 --max-running-requests 64 --attention-backend triton "
    "--trust-remote-code --grammar-backend none"
)


@pytest.fixture
def imported(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder whose settings are the old unit's."""
    folder = tmp_path / "fleet"
    assert run("init", str(folder), "--host", f"root@{HOST}").exit_code == 0
    monkeypatch.chdir(folder)
    result = run("import", str(OLD))
    assert result.exit_code == 0
    (folder / "group_vars/all.yml").write_text(result.stdout)
    return folder


def findings(run: Run) -> dict[str, dict[str, str]]:
    shown = json.loads(run("lint", "inventory/prod.py", "--json").stdout)
    return {finding["rule"]: finding for finding in shown["findings"]}


def words(run: Run) -> list[str]:
    (service,) = json.loads(run("render", "inventory/prod.py", HOST, "--json").stdout)["services"]
    argv: list[str] = service["argv"]
    return argv[argv.index("sglang.launch_server") + 1 :]


def options(command: list[str]) -> set[tuple[str, ...]]:
    """Each option with its values: their order means nothing."""
    found: list[list[str]] = []
    for word in command:
        if word.startswith("--"):
            found.append([word])
        else:
            found[-1].append(word)
    return {tuple(option) for option in found}


def test_the_old_unit_is_rendered_with_its_own_command_line(run: Run, imported: Path) -> None:  # noqa: ARG001  # its folder
    old = OLD.read_text().replace("\\\n", " ").partition("sglang.launch_server")[2].partition("\n")[0].split()
    assert words(run) == old


def test_lint_names_the_leftover_and_the_missing_settings_with_reasons(run: Run, imported: Path) -> None:  # noqa: ARG001  # as above
    found = findings(run)
    assert not [rule for rule, finding in found.items() if finding["severity"] == "error"]
    assert found["SGL201"]["key"] == "services.k26.args.disable_cuda_graph"
    assert "wait for the CPU" in found["SGL201"]["message"]
    assert found["SGL121"]["key"] == "services.k26.args.pp_async_batch_depth"
    assert "never a single one" in found["SGL121"]["message"]
    assert found["SGL123"]["key"] == "services.k26.args.pp_max_micro_batch_size"
    assert "8 requests may share one batch" in found["SGL123"]["message"]


def test_nothing_that_changes_what_the_server_does_is_fixed_unseen(run: Run, imported: Path) -> None:
    before = (imported / "group_vars/all.yml").read_text()
    assert run("lint", "inventory/prod.py", "--fix").exit_code == 0
    assert (imported / "group_vars/all.yml").read_text() == before


def test_the_fixes_and_the_storys_depth_make_the_unit_that_cured_it(run: Run, imported: Path) -> None:
    settings = imported / "group_vars/all.yml"
    assert run("lint", "inventory/prod.py", "--fix", "--unsafe-fixes").exit_code == 0
    assert options(words(run)) == options(NEW.replace("depth 8", "depth 1").split())
    assert {"SGL201", "SGL121"}.isdisjoint(findings(run))
    # The advice is a depth of 1: wrong answers were reported above. The story took 8.
    settings.write_text(settings.read_text().replace("pp_async_batch_depth: 1", "pp_async_batch_depth: 8"))
    assert options(words(run)) == options(NEW.split())
    (service,) = json.loads(run("render", "inventory/prod.py", HOST, "--json").stdout)["services"]
    (environment,) = (file["text"] for file in service["files"] if file["name"] == "environment")
    assert {"NCCL_P2P_LEVEL=5", "NCCL_ALGO=Ring", "NCCL_IB_DISABLE=1"} <= set(environment.replace('"', "").splitlines())
