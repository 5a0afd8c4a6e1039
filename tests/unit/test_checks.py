"""What a host is refused for, before anything on it changes, and what is worth a word."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.checks import Judgement, judge, same_machines
from sglang_fleet.observe import ComputeProcess, Disk, HostState, Model, Process, Unknown
from sglang_fleet.spec import Service
from tests.factories import NOTHING_INSTALLED, deployment, host_state, release, service

FOREIGN = Process(pid=7, command="python3 -m http.server", unit="old.service")
WHOLE = Model(exists=True, directory=True, index=True, missing=(), wrong_size=(), bytes=1, config="{}")
NO_CONFIG = "config.json is not a JSON object"


def refusals(*, gpus: list[int] | None = None, **changes: Any) -> list[str]:
    one = service(gpus=gpus)
    state = host_state({"k26": NOTHING_INSTALLED}, **changes)
    found = judge(deployment=deployment(one), releases=[release(one)], state=state)
    return [refusal.what for refusal in found.refusals]


def test_a_host_that_has_everything_is_not_refused() -> None:
    assert refusals() == []


def test_a_login_without_root_is_told_about_sudo() -> None:
    assert refusals(euid=1000) == ["the login is not root and sudo is not in use"]


def test_f7_what_could_not_be_read_refuses_the_host() -> None:
    said = refusals(compute=Unknown("nvidia-smi: no answer within 10 s"))
    assert said == ["compute could not be read: nvidia-smi: no answer within 10 s"]


def test_an_old_driver_is_refused() -> None:
    assert refusals(driver="570.1") == ["the NVIDIA driver is 570.1; cuda.minimum_driver is 580"]


def test_a_host_without_a_driver_is_refused() -> None:
    assert refusals(driver=None)


def test_too_few_gpus_are_refused() -> None:
    one = service(args={"pp_size": 16})
    state = host_state({"k26": NOTHING_INSTALLED})
    found = judge(deployment=deployment(one), releases=[release(one)], state=state)
    assert [refusal.what for refusal in found.refusals] == [
        "services.k26 needs 16 GPUs (tp_size x pp_size); the host has 8"
    ]


def test_each_host_of_a_replica_needs_its_part_of_the_gpus() -> None:
    state = host_state({"k26": NOTHING_INSTALLED})

    def said(**settings: Any) -> list[str]:
        one = service(nodes=2, group="pair", **settings)
        judged = judge(deployment=deployment(one), releases=[release(one)], state=state)
        return [refusal.what for refusal in judged.refusals]

    assert said(args={"tp_size": 1, "pp_size": 16}) == []
    assert said(args={"tp_size": 2, "pp_size": 16}) == [
        "services.k26 needs 16 GPUs (tp_size x pp_size on 2 nodes); the host has 8"
    ]


def test_a_gpu_that_is_not_there_is_refused() -> None:
    assert refusals(gpus=[0, 1, 2, 3, 4, 5, 6, 9]) == [
        "services.k26.gpus names GPU 9; the host has 0, 1, 2, 3, 4, 5, 6, 7"
    ]


def test_f22_a_foreign_process_on_the_port_is_named() -> None:
    assert refusals(listeners={30001: (FOREIGN,)}) == [
        "port 30001 is held by python3 -m http.server (pid 7, old.service)"
    ]


def test_our_own_unit_on_the_port_is_no_reason() -> None:
    own = Process(pid=7, command="python3", unit="sglang-k26.service")
    assert refusals(listeners={30001: (own,)}) == []


def test_f22_a_foreign_process_on_a_gpu_is_named() -> None:
    holder = ComputeProcess(pid=9, command="sglang::scheduler", unit=None, gpu_uuid="GPU-3", used_mib=90000)
    assert refusals(compute=(holder,)) == ["GPU 3 is held by sglang::scheduler (pid 9)"]


def test_a_foreign_process_on_a_gpu_that_no_service_uses_is_no_reason() -> None:
    holder = ComputeProcess(pid=9, command="x", unit=None, gpu_uuid="GPU-7", used_mib=1)
    one = service(gpus=[0, 1], args={"pp_size": 2})
    state = host_state({"k26": NOTHING_INSTALLED}, compute=(holder,))
    assert judge(deployment=deployment(one), releases=[release(one)], state=state).refusals == ()


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (WHOLE, None),
        (
            Model(exists=False, directory=False, index=False, missing=(), wrong_size=(), bytes=0, config=None),
            "services.k26.args.model_path: /root/models/Kimi-K2.6 is not on the host",
        ),
        (
            Model(exists=True, directory=True, index=True, missing=("a",), wrong_size=("b",), bytes=0, config=None),
            "/root/models/Kimi-K2.6: a is missing, b is cut short",
        ),
        (replace(WHOLE, config='{ "architectures": ['), f"/root/models/Kimi-K2.6: {NO_CONFIG}"),
        (replace(WHOLE, config="[]"), f"/root/models/Kimi-K2.6: {NO_CONFIG}"),
        (replace(WHOLE, config=""), f"/root/models/Kimi-K2.6: {NO_CONFIG}"),
        (replace(WHOLE, config="[" * 100_000), f"/root/models/Kimi-K2.6: {NO_CONFIG}"),
        (replace(WHOLE, missing=("a",), config="{"), f"/root/models/Kimi-K2.6: a is missing, {NO_CONFIG}"),
        (replace(WHOLE, config='{"eps": NaN}'), None),  # Python's own, and SGLang reads it
        (replace(WHOLE, config=None), None),  # another rule says so
        (replace(WHOLE, config=Unknown("EIO")), None),
    ],
)
def test_a_model_that_is_not_whole_is_refused(model: Model, said: str | None) -> None:
    assert refusals(models={"/root/models/Kimi-K2.6": model}) == ([said] if said else [])


def test_a_python_that_is_not_there_matters_only_where_a_venv_is_built() -> None:
    assert refusals(pythons={"python3": None}) == []
    assert refusals(pythons={"python3": None}, venvs=()) == ["python3 is not on the host"]


def judged(*, waived: str = "", **changes: Any) -> Judgement:
    """The story's service on a host with a broken model and little room."""
    one = service(args={"tp_size": 3, "pp_size": 1})
    return judge(
        deployment=deployment(one),
        releases=[release(one)],
        state=host_state({"k26": NOTHING_INSTALLED}, **changes),
        waived=lambda rule, _found: "a reason" if rule.id == waived else "",
    )


def test_a_refusal_names_its_rule() -> None:
    assert [refusal.rule for refusal in judged(driver="570.1").refusals] == ["SGL803"]


def test_a_warning_refuses_nothing_and_is_said() -> None:
    found = judged(disk=Disk(state_free_bytes=10**12, tmp_free_bytes=10**8))
    assert found.refusals == ()
    assert [(one.severity, one.rule, one.what) for one in found.advice] == [
        ("warning", "SGL815", "100 MB are free in /tmp, where compilers of kernels write")
    ]


@pytest.mark.parametrize("rule", ["SGL803", "SGL815"])
def test_what_the_settings_waive_is_not_said(rule: str) -> None:
    changes: dict[str, Any] = {"driver": "580.1", "disk": Disk(state_free_bytes=10**12, tmp_free_bytes=10**12)}
    if rule == "SGL803":
        changes["driver"] = "570.1"
    else:
        changes["disk"] = Disk(state_free_bytes=10**12, tmp_free_bytes=10**8)
    assert judged(waived=rule, **changes) == Judgement()
    assert judged(**changes) != Judgement()


def test_rules_about_the_model_judge_what_the_probe_read() -> None:
    config = json.dumps({"num_attention_heads": 8, "num_hidden_layers": 4})
    model = replace(WHOLE, config=config)
    found = judged(models={"/root/models/Kimi-K2.6": model})
    said = [refusal.what for refusal in found.refusals] + [advice.what for advice in found.advice]
    assert any(text.startswith("services.k26.args.tp_size: ") for text in said), said
    damaged = judged(models={"/root/models/Kimi-K2.6": replace(model, config="{")})
    assert ([refusal.rule for refusal in damaged.refusals], damaged.advice) == (["SGL805"], ())
    assert judged(models={"/root/models/Kimi-K2.6": replace(model, config=Unknown("EIO"))}) == Judgement()


def on_a_host_without_gpus(*services: Service) -> list[str]:
    """What is said of a host that has no GPU, and everything else."""
    seen: dict[str, Any] = {"gpus": (), "driver": None, "persistenced": False}
    state = host_state({one.name: NOTHING_INSTALLED for one in services}, **seen)
    found = judge(deployment=deployment(*services), releases=[*map(release, services)], state=state)
    return [*(one.rule for one in found.refusals), *(one.rule for one in found.advice)]


def test_services_on_the_cpu_need_no_gpus_of_their_host() -> None:
    on_cpu = service(args={"device": "cpu"})
    assert not {"SGL803", "SGL804", "SGL819"} & set(on_a_host_without_gpus(on_cpu))
    assert {"SGL803", "SGL804", "SGL819"} <= set(on_a_host_without_gpus(service()))
    other = service(name="other", args={"port": 30002})
    assert {"SGL803", "SGL804", "SGL819"} <= set(on_a_host_without_gpus(on_cpu, other))


def machine(machine_id: str | Unknown = "a" * 32, boot_id: str | Unknown = "b" * 36, hostname: str = "m") -> HostState:
    return host_state({}, machine_id=machine_id, boot_id=boot_id, hostname=hostname)


def test_one_machine_under_several_names_is_refused_under_each_of_them() -> None:
    found = same_machines({"h1": machine(), "h2": machine("c" * 32), "h1b": machine(), "h2b": machine("c" * 32)})
    assert {host: refusal.what for host, refusal in found.items()} == {
        "h1": "it is the same machine as h1b (machine-id aaaaaaaa...)",
        "h1b": "it is the same machine as h1 (machine-id aaaaaaaa...)",
        "h2": "it is the same machine as h2b (machine-id cccccccc...)",
        "h2b": "it is the same machine as h2 (machine-id cccccccc...)",
    }
    assert all("inventory" in refusal.fix for refusal in found.values())
    three = same_machines({"x": machine(), "y": machine(), "z": machine()})
    assert three["y"].what.startswith("it is the same machine as x, z (")


@pytest.mark.parametrize(
    "other",
    [
        machine(boot_id="c" * 36),  # a copy of the disk
        machine("c" * 32),  # another container of the same machine
        machine(hostname="n"),  # likewise, of an image that has a machine-id
        machine(Unknown("EACCES")),
        machine(boot_id=Unknown("EACCES")),
    ],
)
def test_what_differs_in_one_thing_or_cannot_be_read_is_no_other_name(other: HostState) -> None:
    assert same_machines({"h1": machine(), "h2": other}) == {}
    assert same_machines({"h1": other, "h2": replace(other)}).keys() in ({"h1", "h2"}, set())
    assert same_machines({"h1": machine(Unknown("EACCES")), "h2": machine(Unknown("EACCES"))}) == {}
