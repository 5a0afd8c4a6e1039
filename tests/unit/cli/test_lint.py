"""`lint` shows findings, says how grave they are, and puts right what it may."""

import json
import os
import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sglang_fleet.cli import group

Run = Callable[..., Result]
OFF = "      disable_cuda_graph: true # since capture failed\n"
GRAPHS = ("lint", "--rule", "SGL201")


@pytest.fixture
def settings(deployment: Path) -> Path:
    """The settings of all hosts, with one switch that lint has something against."""
    file = deployment / "group_vars/all.yml"
    file.write_text(file.read_text().replace("      pp_size: 8\n", f"      pp_size: 8\n{OFF}"))
    assert OFF in file.read_text()
    return file


def line_of(file: Path) -> int:
    return file.read_text().splitlines(keepends=True).index(OFF) + 1


def test_a_new_deployment_has_no_errors_and_no_warnings(run: Run, deployment: Path) -> None:
    result = run("lint", str(deployment / "inventory/prod.py"), "--severity", "warning")
    assert result.exit_code == 0, result.output
    assert result.stdout == "no findings on 2 hosts\n"


def test_a_finding_says_where_what_why_and_what_to_do(run: Run, settings: Path) -> None:
    result = run(*GRAPHS)
    assert result.exit_code == 0
    first, *rest, last = result.stdout.splitlines()
    place = f"group_vars/all.yml:{line_of(settings)}"
    assert first == f"{place}  warning SGL201  services.k26.args.disable_cuda_graph"
    assert "(gpu-1, gpu-2)" in " ".join(rest)
    assert any(line.startswith("    fix: ") for line in rest)
    assert rest[-1] == "    --fix --unsafe-fixes removes it"
    assert last == "1 warning on 2 hosts; 1 can be fixed with --fix --unsafe-fixes"


def test_an_error_ends_with_1_and_is_shown_whatever_was_asked_for(run: Run, settings: Path) -> None:
    settings.write_text(settings.read_text() + "nonsense: 1\n")
    result = run(*GRAPHS, "--severity", "error")
    assert result.exit_code == 1
    assert "error SGL001  nonsense" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 error on 2 hosts"


def test_a_waived_finding_is_counted_and_shown_when_asked_for(run: Run, settings: Path) -> None:
    settings.write_text(settings.read_text().replace("# since capture failed", "# waive SGL201: capture fails"))
    assert run(*GRAPHS).stdout == "no findings on 2 hosts; 1 waived\n"
    shown = run(*GRAPHS, "--waived").stdout
    assert "waived: capture fails" in shown
    assert shown.splitlines()[-1] == "no findings on 2 hosts; 1 waived"


def test_a_waived_error_does_not_end_with_1(run: Run, settings: Path) -> None:
    text = settings.read_text().replace(
        OFF, "      disable_cuda_graph_padding: true\n      enable_torch_compile: true\n"
    )
    settings.write_text(text)
    assert run("lint").exit_code == 1
    settings.write_text(text.replace("padding: true", "padding: true # waive SGL204: we run a patched build"))
    assert run("lint").exit_code == 0


def test_an_override_is_judged_like_a_setting(run: Run, deployment: Path) -> None:
    result = run(*GRAPHS, "--data", "services.k26.args.disable_cuda_graph=true")
    assert result.stdout.startswith("--data  warning SGL201  services.k26.args.disable_cuda_graph")
    assert deployment.exists()


def test_severity_is_the_least_grave_that_is_shown(run: Run, settings: Path) -> None:
    assert settings.exists()
    severities = {finding["severity"] for finding in json.loads(run("lint", "--json").stdout)["findings"]}
    assert severities == {"warning", "note"}
    shown = json.loads(run("lint", "--json", "--severity", "warning").stdout)["findings"]
    assert {finding["severity"] for finding in shown} == {"warning"}
    assert json.loads(run("lint", "--json", "--severity", "error").stdout)["findings"] == []


def test_json_has_the_promised_shape(run: Run, settings: Path) -> None:
    result = json.loads(run(*GRAPHS, "--json").stdout)
    (finding,) = result["findings"]
    assert result["summary"] == {"hosts": 2, "errors": 0, "warnings": 1, "notes": 0, "waived": 0}
    assert finding.pop("message")
    assert finding.pop("fix")
    assert finding == {
        "rule": "SGL201",
        "severity": "warning",
        "file": str(settings),
        "line": line_of(settings),
        "key": "services.k26.args.disable_cuda_graph",
        "hosts": ["gpu-1", "gpu-2"],
        "source": "",
        "fixable": True,
        "safe": False,
        "waived": None,
    }


def test_a_rule_that_does_not_exist_is_refused_with_one_that_does(run: Run, deployment: Path) -> None:
    result = run("lint", "--rule", "SGL200")
    assert result.exit_code == 2
    assert "SGL201" in result.stderr
    assert deployment.exists()


def test_a_fix_that_is_not_safe_needs_the_word(run: Run, settings: Path) -> None:
    before = settings.read_text()
    assert run("lint", "--fix").exit_code == 0
    assert settings.read_text() == before
    assert run("lint", "--unsafe-fixes").exit_code == 2


def test_fix_changes_the_file_and_nothing_else_in_it_and_says_what_is_left(run: Run, settings: Path) -> None:
    before, line = settings.read_text(), line_of(settings)
    settings.chmod(0o640)
    result = run(*GRAPHS, "--fix", "--unsafe-fixes")
    assert settings.read_text() == before.replace(OFF, "")
    assert stat.S_IMODE(settings.stat().st_mode) == 0o640
    assert result.stdout.splitlines() == [
        f"fixed  group_vars/all.yml:{line}  SGL201  services.k26.args.disable_cuda_graph",
        "    took its comment along: # since capture failed",
        "no findings on 2 hosts",
    ]


def test_diff_shows_the_change_alone_and_makes_none(run: Run, settings: Path) -> None:
    before = settings.read_text()
    result = run(*GRAPHS, "--diff", "--unsafe-fixes")
    assert settings.read_text() == before
    assert result.stdout.splitlines()[:2] == ["--- a/group_vars/all.yml", "+++ b/group_vars/all.yml"]
    assert f"-{OFF}" in result.stdout
    assert result.stderr == "1 warning on 2 hosts; --fix --unsafe-fixes would put 1 of these right\n"


def test_the_diff_in_json_is_one_that_git_takes(run: Run, settings: Path) -> None:
    words = (*GRAPHS, "--diff", "--unsafe-fixes")
    shown = json.loads(run(*words, "--json").stdout)["diff"]
    assert shown.startswith("--- a/group_vars/all.yml\n")
    assert shown.endswith("\n")
    assert not shown.endswith("\n\n")
    assert run(*words).stdout == shown
    subprocess.run(
        ["git", "apply", "-"], cwd=settings.parents[1], input=shown, text=True, check=True,
        env={"PATH": os.environ["PATH"], "GIT_DIR": "none"},
    )  # fmt: skip
    assert OFF not in settings.read_text()


def test_a_diff_that_git_cannot_take_is_said_to_be_none(run: Run, settings: Path) -> None:
    words = (*GRAPHS, "--diff", "--unsafe-fixes")
    assert "masked" not in run(*words).stderr
    settings.write_text(settings.read_text().replace("# since capture failed", "# token=leak"))
    result = run(*words)
    assert "leak" not in result.output
    assert "masked lines keep the diff of group_vars/all.yml from being applied" in " ".join(result.stderr.split())


def test_what_cannot_be_fixed_is_said_with_the_reason(run: Run, settings: Path) -> None:
    before = settings.read_text()
    key = "services.k26.args.disable_cuda_graph"
    result = run(*GRAPHS, "--fix", "--unsafe-fixes", "--data", f"{key}=true")
    assert result.stdout.splitlines()[0] == "not fixed  --data  SGL201"
    assert f"{key} comes from --data {key}: change it there" in " ".join(result.stdout.split())
    assert result.stdout.splitlines()[-1] == "1 warning on 2 hosts"
    assert settings.read_text() == before


def test_a_host_that_has_it_in_two_files_gets_both_put_right(run: Run, settings: Path) -> None:
    own = settings.parents[1] / "host_vars/gpu-2.yml"
    own.write_text(f"services:\n  k26:\n    args:\n{OFF}")
    result = run(*GRAPHS, "--fix", "--unsafe-fixes")
    assert result.stdout.splitlines()[-1] == "no findings on 2 hosts"
    assert own.read_text() == "services:\n  k26:\n    args: {}\n"


def test_fix_in_json_says_what_was_done(run: Run, settings: Path) -> None:
    result = json.loads(run(*GRAPHS, "--fix", "--unsafe-fixes", "--diff", "--json").stdout)
    assert [finding["rule"] for finding in result["fixed"]] == ["SGL201"]
    assert result["not_fixed"] == []
    assert result["findings"] == []
    assert result["diff"].startswith("--- a/group_vars/all.yml")
    assert OFF not in settings.read_text()


def test_diff_in_json_says_what_would_not_be_done(run: Run, settings: Path) -> None:
    result = json.loads(run(*GRAPHS, "--diff", "--unsafe-fixes", "--json").stdout)
    assert list(result) == ["findings", "summary", "diff", "not_fixed"]
    assert OFF in settings.read_text()


def test_a_file_that_other_inventories_read_too_is_pointed_out(run: Run, settings: Path) -> None:
    (settings.parents[1] / "inventory/test.py").write_text("hosts = ['gpu-9']\n")
    result = run("lint", "inventory/prod.py", "--rule", "SGL201", "--fix", "--unsafe-fixes")
    assert "inventory/test.py" in result.stderr


def test_an_idle_waiver_is_not_said_where_other_inventories_may_need_it(run: Run, settings: Path) -> None:
    settings.write_text(settings.read_text().replace("# since capture failed", "# waive SGL501: x"))
    assert "SGL006" in run("lint", "inventory/prod.py").stdout
    assert "SGL006" not in run("lint", "inventory/prod.py", "--data", "rollout.failure_budget=1").stdout
    (settings.parents[1] / "inventory/test.py").write_text("hosts = ['gpu-9']\n")
    assert "SGL006" not in run("lint", "inventory/prod.py").stdout


def test_many_hosts_are_counted(run: Run, settings: Path) -> None:
    inventory = settings.parents[1] / "inventory/prod.py"
    inventory.write_text(f"hosts = {[f'gpu-{number}' for number in range(16)]!r}\n")
    assert "(all 16 hosts)" in run(*GRAPHS).stdout
    own = settings.parents[1] / "host_vars/gpu-3.yml"
    own.write_text("services: {k26: {args: {disable_cuda_graph: false}}}\n")
    assert "(gpu-0, gpu-1, gpu-2 and 12 more)" in " ".join(run(*GRAPHS).stdout.split())


def test_no_line_is_wider_than_80_columns(run: Run, settings: Path) -> None:
    long = "services.k26-with-a-rather-long-name.args."
    settings.write_text(settings.read_text().replace("  k26:\n", "  k26-with-a-rather-long-name:\n"))
    result = run("lint")
    assert f"    {long}disable_cuda_graph" in result.stdout.splitlines()
    assert max(map(len, result.output.splitlines())) <= 80


def test_colours_are_for_terminals_and_can_be_turned_off(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(*, terminal: bool) -> str:
        return CliRunner().invoke(group, GRAPHS, color=terminal).stdout

    assert settings.exists()
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" not in shown(terminal=False)
    assert "\x1b[" in shown(terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in shown(terminal=True)


HEADS = {"num_hidden_layers": 8, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 4096}


@pytest.fixture
def config(settings: Path) -> Path:
    """The config.json of the services' model, in a folder for --models; the context that is set is too long for it."""
    name = next(line for line in settings.read_text().splitlines() if "model_path:" in line).rpartition("/")[2].strip()
    file = settings.parents[1] / "models" / name / "config.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"], **HEADS}))
    assert "context_length: 32768" in settings.read_text()
    return file


def test_a_model_that_is_elsewhere_is_judged_by_its_config(run: Run, config: Path) -> None:
    assert "SGL212" not in run("lint", "--severity", "error").stdout
    result = run("lint", "--severity", "error", "--models", str(config.parents[1]))
    assert "32768 is more than the model's 4096" in result.stdout
    assert result.exit_code == 1
    assert result.stderr == ""


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_model_that_cannot_be_read_is_said(run: Run, config: Path, text: str) -> None:
    config.write_text(text)
    result = run("lint", "--severity", "error", "--models", str(config.parents[1]))
    assert result.exit_code == 0
    noted = " ".join(result.stderr.split())
    assert noted.count("note: ") == 1
    assert "config.json" in noted
    assert "what depends on the model was not judged" in noted


def test_a_model_that_is_at_its_place_and_broken_is_said(run: Run, settings: Path, config: Path) -> None:
    text = re.sub("model_path: .*", f"model_path: {config.parent}", settings.read_text())
    settings.write_text(text)
    assert "32768 is more than the model's 4096" in run("lint").stdout
    config.write_text("{")
    assert "was not judged" in " ".join(run("lint").stderr.split())


def test_a_model_that_is_not_in_the_folder_is_said(run: Run, config: Path) -> None:
    folder = config.parents[1]
    config.unlink()
    noted = " ".join(run("lint", "--models", str(folder)).stderr.split())
    assert f"has no {config.parent.name}/config.json" in noted
    assert "not judged" not in " ".join(run("lint").stderr.split())


def test_help_has_an_example(run: Run) -> None:
    result = run("lint", "--help")
    assert "sglang-fleet lint inventory/prod.py --fix" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_diff_says_what_unsafe_fixes_would_show(run: Run, settings: Path) -> None:
    assert settings.exists()
    result = run(*GRAPHS, "--diff")
    assert result.stdout == ""
    said = "1 warning on 2 hosts; --fix would put none of these right; --diff --unsafe-fixes would show 1"
    assert " ".join(result.stderr.split()) == said


def test_the_value_that_would_be_written_is_said(run: Run, deployment: Path) -> None:
    settings = deployment / "group_vars/all.yml"
    text = re.sub(r"      pp_async_batch_depth: .*\n", "", settings.read_text())
    settings.write_text(text.replace("environment: {}", "environment: {NCCL_DEBUG: info}"))
    assert "    --fix --unsafe-fixes writes pp_async_batch_depth: 1\n" in run("lint", "--rule", "SGL121").stdout
    assert "    --fix writes nccl.debug: info, removes it\n" in run("lint", "--rule", "SGL503").stdout


def test_only_what_really_can_be_fixed_is_counted_and_marked(run: Run, settings: Path) -> None:
    """Of two services, one shares its arguments by an alias."""
    text = settings.read_text().replace("    args: #", "    gpus: [0]\n    args: &shared #")
    other = "  k27:\n    gpus: [1]\n    unit: k27.service\n    args: {<<: *shared, port: 30002}\n\nrollout:"
    settings.write_text(text.replace("\nrollout:", other).replace("api_key: {env: K26_API_KEY}", ""))
    shown = run(*GRAPHS)
    assert "disable_cuda_graph" in shown.stdout
    assert "--fix" not in shown.stdout
    finding, *_ = json.loads(run(*GRAPHS, "--json").stdout)["findings"]
    assert finding["fixable"] is False
    assert "--diff --unsafe-fixes would" not in run(*GRAPHS, "--diff").stderr


def test_a_refused_finding_does_not_hide_another_of_the_same_key(run: Run, settings: Path) -> None:
    own = settings.parents[1] / "host_vars/gpu-2.yml"
    own.write_text("services: {k26: {args: {<<: {disable_cuda_graph: true}}}}\n")
    settings.write_text(settings.read_text().replace(OFF, ""))
    (settings.parents[1] / "host_vars/gpu-1.yml").write_text(f"services:\n  k26:\n    args:\n{OFF}")
    last = run(*GRAPHS).stdout.splitlines()[-1]
    assert last == "2 warnings on 2 hosts; 1 can be fixed with --fix --unsafe-fixes"


def test_comments_around_what_is_removed_are_named_without_their_secrets(run: Run, settings: Path) -> None:
    above = "      # capture failed, see HF_TOKEN=hf_secret\n      # and the ticket\n"
    settings.write_text(settings.read_text().replace(OFF, above + OFF.replace("since", "api_key=sk-live since")))
    result = run("lint", "--rule", "SGL201", "--fix", "--unsafe-fixes")
    assert "hf_secret" not in result.output
    assert "sk-live" not in result.output
    said = " ".join(result.stdout.split())
    line = settings.read_text().splitlines().index("      # capture failed, see HF_TOKEN=hf_secret") + 1
    assert "took its comment along: # api_key=•••" in said
    assert f"the comment above it is still there, at group_vars/all.yml:{line}: # capture failed" in said


def test_comments_are_in_json_too(run: Run, settings: Path) -> None:
    settings.write_text(settings.read_text().replace(OFF, f"      # above\n{OFF}"))
    (fixed,) = json.loads(run(*GRAPHS, "--fix", "--unsafe-fixes", "--json").stdout)["fixed"]
    assert fixed["comments_removed"] == ["# since capture failed"]
    (left,) = fixed["comments_left"]
    assert left["text"] == "# above"
    assert settings.read_text().splitlines()[left["line"] - 1] == "      # above"


def test_a_comment_moves_with_its_setting(run: Run, deployment: Path) -> None:
    settings = deployment / "group_vars/all.yml"
    text = settings.read_text().replace("environment: {}", "environment:\n      NCCL_DEBUG: INFO # to see rings")
    settings.write_text(text)
    result = run("lint", "--rule", "SGL503", "--fix")
    assert "took its comment" not in result.stdout
    assert settings.read_text().count("# to see rings") == 1
    above, below = settings.read_text().split("# to see rings")[1].strip().splitlines()[0], above_of(settings)
    assert "debug: INFO" in above + below
    assert json.loads(run("lint", "--json").stdout)["summary"]["errors"] == 0


def above_of(settings: Path) -> str:
    """The line of the comment that moved."""
    return next(line for line in settings.read_text().splitlines() if "# to see rings" in line)


def test_a_stray_file_is_named_once(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-9.yml").write_text("rollout: {}\n")
    (deployment / "group_vars/k62.yml").write_text("rollout: {}\n")
    result = run("lint")
    assert result.output.count("gpu-9.yml") == 1
    assert result.output.count("k62.yml") == 1


def test_a_waiver_at_the_wrong_line_is_sent_to_the_right_one(run: Run, settings: Path) -> None:
    settings.write_text("# waive SGL201: capture fails\n\n" + settings.read_text())
    said = " ".join(run("lint", "--rule", "SGL006").stdout.split())
    assert f"fix: SGL201 is found at line {line_of(settings)}: put it there" in said


def test_a_secret_is_never_shown_whatever_is_wrong_with_it(run: Run, settings: Path) -> None:
    for words in ("extra_args: --api-key sk-live-1", "environment: HF_TOKEN=sk-live-1", "secrets: sk-live-1"):
        name = words.partition(":")[0]
        text = re.sub(rf"(?m)^    {name}:.*\n", "", settings.read_text())
        (settings.parent / "all.yml").write_text(text.replace("    nccl:", f"    {words}\n    nccl:"))
        for option in ([], ["--json"], ["--diff"], ["--fix", "--unsafe-fixes", "--diff"]):
            assert "sk-live-1" not in run("lint", *option).output
