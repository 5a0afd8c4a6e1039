"""What the rules say of settings and hosts before anything changes."""

from typing import Any

from tests.lab.evidence import untouched
from tests.lab.operator import SETTINGS, Operator, main_pid, running_release

SMI = "/etc/lab-nvidia-smi"


def at_once(requests: int, *, budget: int = 0) -> dict[str, Any]:
    """The settings with a change, rolled out to all hosts at once."""
    service = SETTINGS["services"]["k26"]
    changed = {**service, "args": {**service["args"], "max_running_requests": requests}}
    rollout = {"waves": ["100%"], "failure_budget": budget}
    return {**SETTINGS, "services": {"k26": changed}, "rollout": rollout}


def test_settings_that_cannot_work_change_nothing_and_may_be_waived(deployed: Operator) -> None:
    deployed.change(args={"max_running_requests": 41, "grpc_port": 40000})
    for run in (deployed.plan, deployed.deploy):
        with untouched(*deployed.lab.hosts):
            ran = run()
        assert ran.status == 1, ran.text
        assert "services.k26.args.grpc_port" in ran.text
        assert "[SGL708]" in ran.text
        assert "Nothing was changed" in ran.text
        assert "Traceback" not in ran.text
    settings = deployed.folder / "group_vars/all.yml"
    text = settings.read_text()
    settings.write_text(text.replace('"grpc_port": 40000\n', '"grpc_port": 40000 # waive SGL708: a patched build\n'))
    assert settings.read_text() != text
    ran = deployed.plan()
    assert ran.status == 0, ran.text
    assert "SGL708" not in ran.text


def test_warnings_about_a_host_are_told_with_their_rule_and_stop_nothing(deployed: Operator) -> None:
    h1, h2, *_ = deployed.lab.hosts
    deployed.settings(at_once(42))
    deployed.hosts(["h1", "h2"])
    h2.run(f"cp {SMI}/gpus.csv /root/kept; sed -i '2s/97887/49140/' {SMI}/gpus.csv")
    try:
        ran = deployed.deploy()
    finally:
        h2.run(f"mv /root/kept {SMI}/gpus.csv")
    assert ran.status == 0, ran.text
    assert "    h2: worth a look" in ran.text
    assert "[SGL816]" in ran.text
    assert "h1: worth a look" not in ran.text
    assert [ran.verdict(name).split()[0] for name in ("h1", "h2")] == ["proven", "proven"]
    assert running_release(h1) == running_release(h2)


def test_a_refusal_names_its_rule_and_leaves_the_host_alone(deployed: Operator) -> None:
    h1 = deployed.lab.host("h1")
    deployed.settings(at_once(43, budget=1))
    deployed.hosts(["h1", "h2"])
    pid = main_pid(h1)
    h1.run(f"cp {SMI}/driver /root/kept; echo 570.124 > {SMI}/driver")
    try:
        with untouched(h1):
            ran = deployed.deploy()
    finally:
        h1.run(f"mv /root/kept {SMI}/driver")
    assert ran.status == 1, ran.text
    assert "the NVIDIA driver is 570.124; cuda.minimum_driver is 580 [SGL803]" in " ".join(ran.text.split())
    assert [ran.verdict(name).split()[0] for name in ("h1", "h2")] == ["REFUSED", "proven"]
    assert main_pid(h1) == pid


def test_what_lint_finds_beside_errors_is_one_line(deployed: Operator) -> None:
    deployed.change(args={"watchdog_timeout": 60})
    ran = deployed.plan()
    assert ran.status == 0, ran.text
    (line,) = [line for line in ran.text.splitlines() if "in the settings: `sglang-fleet lint` shows them" in line]
    assert "1 warning and" in line
    assert "SGL605" not in ran.text


def test_notes_about_hosts_are_told_with_whole_differences_only(deployed: Operator) -> None:
    short, full = deployed.run("--dry"), deployed.plan()
    assert (short.status, full.status) == (0, 0), f"{short.text}\n{full.text}"
    assert "[SGL819]" in full.text
    assert "[SGL819]" not in short.text
