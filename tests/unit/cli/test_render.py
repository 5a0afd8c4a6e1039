"""`render` shows what a deploy would write, without secrets."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from roles.wanted import want
from sglang_fleet.cli.common import load_settings
from sglang_fleet.release import Release

Run = Callable[..., Result]
SECOND = """\
services:
  k26: {gpus: [0, 1, 2, 3, 4, 5, 6, 7]}
  small:
    gpus: [8]
    user: serving
    args: {model_path: Qwen/Qwen3-0.6B, port: 30002}
    secrets: {HF_TOKEN: {file: secrets/token}}
"""


def _without_secrets(deployment: Path) -> None:
    settings = deployment / "group_vars/all.yml"
    lines = settings.read_text().splitlines(keepends=True)
    settings.write_text("".join(line for line in lines if "secrets:" not in line))


def _staged(host: str = "gpu-1") -> tuple[Release, ...]:
    """What a deploy would stage on a host."""
    settings = load_settings("inventory/prod.py")
    return want(settings.loaded, folder=settings.folder).releases[host]


def test_without_secrets_every_file_is_what_a_deploy_stages(run: Run, deployment: Path) -> None:
    _without_secrets(deployment)
    (release,) = _staged()
    result = run("render", "inventory/prod.py", "gpu-1", "--json")
    (service,) = json.loads(result.stdout)["services"]
    assert service["release"] == release.id
    assert [(file["name"], file["mode"], file["owner"], file["text"]) for file in service["files"]] == [
        (file.name, file.mode, file.owner, file.text) for file in release.files
    ]


def test_the_text_holds_every_file_in_order_under_its_name(run: Run, deployment: Path) -> None:
    _without_secrets(deployment)
    (release,) = _staged()
    assert run("render", "inventory/prod.py", "gpu-1").stdout == (
        f"# k26 on gpu-1, release {release.id}\n"
        f"\n# unit sglang-k26.service (0644)\n{release.text('unit')}"
        f"\n# environment (0600)\n{release.text('environment')}"
    )


def test_with_secrets_only_values_and_the_id_differ_from_what_a_deploy_stages(
    run: Run, deployment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (deployment / "host_vars/gpu-1.yml").write_text(SECOND)
    (deployment / "secrets").mkdir()
    (deployment / "secrets/token").write_text("poison-file")
    monkeypatch.setenv("K26_API_KEY", "poison-variable")
    releases = _staged()
    services = json.loads(run("render", "inventory/prod.py", "gpu-1", "--json").stdout)["services"]
    assert [service["release"] for service in services] == [None, None]
    for service, release in zip(services, releases, strict=True):
        assert {file["name"]: file["text"] for file in service["files"]} == {
            file.name: file.text.replace("poison-variable", "•••")
            .replace("poison-file", "•••")
            .replace(release.id, "<release>")
            for file in release.files
        }


@pytest.mark.parametrize("output", [(), ("--json",)])
def test_no_secret_is_read_or_shown(
    run: Run, deployment: Path, monkeypatch: pytest.MonkeyPatch, output: tuple[str, ...]
) -> None:
    proof = deployment / "asked"
    (deployment / "host_vars/gpu-1.yml").write_text(
        f"services: {{k26: {{secrets: {{HF_TOKEN: {{command: touch {proof}}}, ADMIN_KEY: {{file: not/there}}}}}}}}"
    )
    monkeypatch.setenv("K26_API_KEY", "poison-variable")
    result = run("render", "inventory/prod.py", "gpu-1", *output)
    assert result.exit_code == 0
    assert "poison" not in result.output
    assert "HF_TOKEN=•••" in result.stdout
    assert not proof.exists()


def test_a_secret_among_the_plain_variables_is_masked(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-1.yml").write_text("services: {k26: {environment: {MY_TOKEN: poison, MY_PATH: /a}}}")
    shown = run("render", "inventory/prod.py", "gpu-1").stdout
    assert "MY_TOKEN=•••\n" in shown
    assert "MY_PATH=/a\n" in shown
    assert "poison" not in shown


def test_the_line_above_a_release_says_why_it_has_no_id(run: Run, deployment: Path) -> None:  # noqa: ARG001  # its folder
    first = run("render", "inventory/prod.py", "gpu-1").stdout.splitlines()[0]
    assert first == "# k26 on gpu-1, release <release>: its id depends on secrets, none of which is read"


def test_the_command_line_is_there_word_by_word(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-1.yml").write_text("services: {k26: {args: {model_path: /srv/a b}, extra_args: [-x]}}")
    (service,) = json.loads(run("render", "inventory/prod.py", "gpu-1", "--json").stdout)["services"]
    argv = service["argv"]
    assert argv[0].endswith("/bin/python")
    assert argv[1:5] == ["-m", "sglang.launch_server", "--model-path", "/srv/a b"]
    assert argv[-3:] == ["--config", "/var/lib/sglang-fleet/services/k26/releases/<release>/secrets.yaml", "-x"]


def test_one_service_can_be_chosen(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-1.yml").write_text(SECOND)
    both = run("render", "inventory/prod.py", "gpu-1").stdout
    assert both.count("# unit ") == 2
    one = run("render", "inventory/prod.py", "gpu-1", "small").stdout
    assert one.startswith("# small on gpu-1, release ")
    assert "# environment.secret (0600)\nHF_TOKEN=•••\n" in one
    assert one in both


def test_a_file_of_another_owner_says_so(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-1.yml").write_text("services: {k26: {user: serving}}")
    assert "# secrets.yaml (0400, serving)\n" in run("render", "inventory/prod.py", "gpu-1").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gpu-9",), "inventory/prod.py has no host 'gpu-9': did you mean gpu-1 or gpu-2?"),
        (("somewhere",), "inventory/prod.py has no host 'somewhere': it has gpu-1, gpu-2"),
        (("gpu-1", "k2"), "gpu-1 has no service 'k2': did you mean k26?"),
        (("gpu-1", "other"), "gpu-1 has no service 'other': it has k26"),
    ],
)
def test_a_name_that_is_not_there(run: Run, deployment: Path, words: tuple[str, ...], said: str) -> None:  # noqa: ARG001  # as above
    result = run("render", "inventory/prod.py", *words)
    assert result.exit_code == 1
    assert result.stderr.replace("\n", " ").strip() == said
    assert result.stdout == ""


def test_a_host_without_a_service_has_nothing_to_show(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-1.yml").write_text("services: {k26: null}")
    result = run("render", "inventory/prod.py", "gpu-1")
    assert (result.exit_code, result.stderr) == (1, "the settings give gpu-1 no service\n")


def test_problems_of_the_host_are_shown_with_file_and_line(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-1.yml").write_text("services:\n  k26:\n    args: {prot: 1}\n")
    result = run("render", "inventory/prod.py", "gpu-1")
    assert result.exit_code == 1
    assert result.stderr.startswith("host_vars/gpu-1.yml:3  services.k26.args.prot\n")
    as_json = json.loads(run("render", "inventory/prod.py", "gpu-1", "--json").stdout)
    assert [problem["key"] for problem in as_json["problems"]] == ["services.k26.args.prot"]


def test_settings_that_a_deploy_refuses_are_rendered_as_far_as_they_can_be(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-1.yml").write_text("services:\n  k26:\n    args: {nnodes: 2}\n")
    result = run("render", "inventory/prod.py", "gpu-1")
    assert result.exit_code == 1
    assert "services.k26.args.nnodes" in result.stderr
    assert "    --nnodes 2" in result.stdout


def test_settings_that_cannot_be_read_are_not_rendered(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-1.yml").write_text("sglang: {version: newest}\n")
    result = run("render", "inventory/prod.py", "gpu-1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "sglang.version" in result.stderr


def test_a_lock_file_that_is_not_there_leaves_the_venv_open(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-1.yml").write_text("sglang: {requirements: locks/none.txt}\n")
    result = run("render", "inventory/prod.py", "gpu-1")
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "# k26 on gpu-1, release <release>: its id depends on a lock file that is not there\n"
    )
    assert "ExecStart=/var/lib/sglang-fleet/venvs/<venv>/bin/python -m sglang.launch_server" in result.stdout
    assert "locks/none.txt" in result.stderr


def test_problems_of_other_hosts_do_not_matter(run: Run, deployment: Path) -> None:
    (deployment / "host_vars/gpu-2.yml").write_text("services:\n  k26:\n    args: {prot: 1}\n")
    assert run("render", "inventory/prod.py", "gpu-1").exit_code == 0


def test_a_service_that_cannot_be_read_is_not_said_to_be_missing(run: Run, deployment: Path) -> None:
    settings = deployment / "group_vars/all.yml"
    settings.write_text(settings.read_text().replace("    environment: {}\n", "    extra_args: --api-key sk-X\n"))
    for words in ([], ["k26"]):
        result = run("render", "inventory/prod.py", "gpu-1", *words)
        assert result.exit_code == 1
        assert "k26 cannot be rendered for gpu-1: see above" in result.stderr
        assert "no service" not in result.output
        assert "sk-X" not in result.output


def test_one_that_can_be_read_is_rendered_and_the_other_named(run: Run, deployment: Path) -> None:
    settings = deployment / "group_vars/all.yml"
    settings.write_text(settings.read_text().replace("  k26:\n", "  bad: {args: 1}\n  k26:\n"))
    result = run("render", "inventory/prod.py", "gpu-1")
    assert result.exit_code == 1
    assert "note: bad cannot be rendered: see above" in result.stderr
    assert "# k26 on gpu-1" in result.stdout
