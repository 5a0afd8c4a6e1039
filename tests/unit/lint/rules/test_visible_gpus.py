"""GPUs that a variable hides."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.observe import HostState
from tests.unit.lint.views import ask, host, view

FOUR = {"tp_size": 2, "pp_size": 2}
KEY = "services.k26.environment.CUDA_VISIBLE_DEVICES"


def visible(text: str, args: dict[str, Any] | None = None, **service: Any) -> dict[str, Any]:
    order = service.pop("order", None)
    environment = {"CUDA_VISIBLE_DEVICES": text} | ({"CUDA_DEVICE_ORDER": order} if order else {})
    return {"args": args, "environment": environment, **service}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (visible("0,1", FOUR), "shows the server 2 GPUs; tp_size 2 times pp_size 2 needs 4"),
        (visible("0,1,2, 3 ", {"tp_size": 2, "pp_size": 2, "dp_size": 2}), "needs 8"),
        (visible("0,0", {"tp_size": 2}), "shows the server 1 GPU; tp_size 2"),
        (visible("all", {"tp_size": 2}), "shows the server 0 GPUs, since CUDA reads numbers between commas"),
        (visible("-1", FOUR), "shows the server 0 GPUs, since"),
        (visible("0 1", {"tp_size": 2}), "shows the server 1 GPU, since CUDA"),
        (visible("0,-1,1", {"tp_size": 2}), "shows the server 1 GPU, since CUDA"),
        (visible("0;1", {"tp_size": 2}), "shows the server 1 GPU; "),
        (visible(""), "shows the server 0 GPUs"),
        (visible("4,5", {"tp_size": 2, "base_gpu_id": 1}), "needs 3"),
        (visible("0,1,2", {"tp_size": 8}, nodes=2), "tp_size 8 times pp_size 1 on 2 nodes needs 4"),
    ],
)
def test_too_few(settings: dict[str, Any], words: str) -> None:
    one = view(**settings)
    (found,) = ask("SGL147", one)
    assert found.key == KEY
    assert words in found.message
    assert not ask("SGL148", one)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        visible("0,1,2,3", FOUR),
        visible("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", FOUR),
        visible("MIG-8932f937", FOUR),
        visible("0,1,2,3,-1", FOUR),
        visible("0,GPU-8932f937", FOUR),
        visible("0,1", {"tp_size": 2, "dp_size": 2, "enable_dp_attention": True}),
        visible("0", {**FOUR, "device": "cpu"}),
        visible("0,1,2,3", {"tp_size": 8}, nodes=2),
        visible("0,1", FOUR, gpus=[0, 1, 2, 3]),  # a contradiction, which SGL001 refuses
    ],
)
def test_enough_or_not_known(settings: dict[str, Any]) -> None:
    assert not ask("SGL147", view(**settings))


def test_gpus_say_the_same_better() -> None:
    (found,) = ask("SGL148", view(**visible("4,5", {"tp_size": 2})))
    assert found.key == KEY
    assert found.fix == "write gpus: [4, 5], and remove the variable"


@pytest.mark.parametrize("settings", [{}, {"gpus": [0]}, visible("GPU-8932f937"), visible("0", gpus=[0])])
def test_nothing_better_is_known(settings: dict[str, Any]) -> None:
    assert not ask("SGL148", view(**settings))


def unlike(state: HostState) -> HostState:
    assert isinstance(state.gpus, tuple)
    return replace(state, gpus=(replace(state.gpus[0], memory_total_mib=1), *state.gpus[1:]))


@pytest.mark.parametrize(
    ("text", "order", "state", "expected"),
    [
        ("1,3", None, host(count=4), (1, 3)),
        ("1,3", "PCI_BUS_ID", unlike(host(count=4)), (1, 3)),
        ("1,3", None, unlike(host(count=4)), None),
        ("GPU-1", None, host(count=4), None),
        ("", None, host(count=4), ()),
        ("2,x,1", None, host(count=4), (2,)),
    ],
)
def test_only_visible_gpus_are_the_service_s(
    text: str, order: str | None, state: HostState, expected: tuple[int, ...] | None
) -> None:
    gpus = view(**visible(text, order=order), state=state).gpus
    assert (None if gpus is None else tuple(gpu.index for gpu in gpus)) == expected


@pytest.mark.parametrize("rule", ["SGL102", "SGL116"])
def test_the_host_is_not_blamed_for_hidden_gpus(rule: str) -> None:
    args = {"tp_size": 2, "dp_size": 2, "base_gpu_id": 4}
    assert not ask(rule, view(**visible("0,1", args), state=host(count=8)))
