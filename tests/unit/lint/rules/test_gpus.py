"""A host's GPUs."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.observe import ComputeProcess, Gpu, Unknown, known
from tests.factories import converged, host_state, release, service
from tests.unit.lint.host_views import host_view, messages
from tests.unit.lint.views import ask, host, view

GPUS = known(host_state({}).gpus)


def with_gpu(index: int, **changes: Any) -> tuple[Gpu, ...]:
    return tuple(replace(gpu, **changes) if gpu.index == index else gpu for gpu in GPUS)


@pytest.mark.parametrize(
    ("gpus", "chosen", "said"),
    [
        (with_gpu(7, compute_cap="8.9"), None, "are of different architectures: compute capability 12.0 and 8.9"),
        (with_gpu(7, memory_total_mib=49140), None, "have different memory, 49140 to 97887 MiB: the least counts"),
        (with_gpu(7, memory_total_mib=97250), None, None),
        (with_gpu(7, compute_cap="8.9"), [0, 1], None),
        (with_gpu(7, compute_cap=Unknown("x"), memory_total_mib=Unknown("x")), None, None),
        (Unknown("x"), None, None),
        (GPUS, None, None),
    ],
)
def test_gpus_of_one_service_that_differ(gpus: Any, chosen: list[int] | None, said: str | None) -> None:  # noqa: ANN401 - as probed
    one = view({"pp_size": len(chosen or GPUS)}, gpus=chosen, state=host(gpus=gpus))
    assert [found.message for found in ask("SGL816", one)] == ([said] if said else [])


def test_which_gpus_a_service_takes_of_more_is_not_known() -> None:
    one = view({"pp_size": 2}, state=host(gpus=with_gpu(7, compute_cap="8.9")))
    assert ask("SGL816", one) == []


SMALL = with_gpu(7, memory_total_mib=49140)


@pytest.mark.parametrize(
    ("args", "service", "gpus", "said"),
    [
        ({"tp_size": 8}, {}, SMALL, True),
        ({"tp_size": 4, "pp_size": 2}, {}, SMALL, True),
        ({"pp_size": 8}, {}, SMALL, False),
        ({"tp_size": 16}, {"nodes": 2}, SMALL, True),
        ({"tp_size": 4}, {}, SMALL, False),  # which four is not known
        ({"tp_size": 2}, {"gpus": [6, 7]}, SMALL, True),
        ({"tp_size": 2}, {"gpus": [5, 6]}, SMALL, False),
        ({"tp_size": 8}, {}, with_gpu(7, memory_total_mib=90000), False),
        ({"tp_size": 8}, {"environment": {"SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK": "0"}}, SMALL, False),
        ({"tp_size": 8}, {"version": "0.5.9"}, SMALL, False),
    ],
)
def test_gpus_that_sglang_refuses_to_share_layers_among(
    args: dict[str, Any],
    service: dict[str, Any],
    gpus: tuple[Gpu, ...],
    said: bool,  # noqa: FBT001 - a case
) -> None:
    assert len(ask("SGL824", view(args, state=host(gpus=gpus), **service))) == said


def test_memory_that_no_process_explains() -> None:
    held = with_gpu(3, memory_used_mib=40000)
    assert messages("SGL817", host_view(gpus=held)) == [
        "memory of GPU 3 is in use, and nvidia-smi names no process",
    ]


@pytest.mark.parametrize(
    ("gpus", "compute"),
    [
        (with_gpu(3, memory_used_mib=2000), ()),
        (with_gpu(3, memory_used_mib=Unknown("N/A")), ()),
        (with_gpu(3, memory_used_mib=40000), Unknown("x")),
        (Unknown("x"), ()),
        (
            with_gpu(3, memory_used_mib=40000),
            (ComputeProcess(pid=9, command="x", unit="sglang-k26.service", gpu_uuid="GPU-3", used_mib=40000),),
        ),
    ],
)
def test_memory_that_is_explained_or_not_known(gpus: Any, compute: Any) -> None:  # noqa: ANN401 - as probed
    assert messages("SGL817", host_view(gpus=gpus, compute=compute)) == []


def test_memory_of_gpus_that_no_service_uses_is_nobodys_matter() -> None:
    one = service(gpus=[0, 1], args={"pp_size": 2})
    assert messages("SGL817", host_view(one, gpus=with_gpu(3, memory_used_mib=40000))) == []


def test_gpus_are_nothing_to_a_service_on_the_cpu() -> None:
    one = service(args={"device": "cpu"})
    assert messages("SGL817", host_view(one, gpus=with_gpu(3, memory_used_mib=40000))) == []
    unlike = with_gpu(7, compute_cap="8.9", memory_total_mib=49140)
    for name in ("SGL816", "SGL824"):
        assert ask(name, view({"tp_size": 8}, state=host(gpus=unlike)))
        assert not ask(name, view({"tp_size": 8, "device": "cpu"}, state=host(gpus=unlike)))
        assert not ask(name, view({"tp_size": 8}, extra_args=["--device", "cpu"], state=host(gpus=unlike)))


def test_a_service_on_the_cpu_has_no_gpus_to_be_counted_or_known() -> None:
    one = view({"device": "cpu", "dp_size": 16}, state=host(count=1))
    assert one.gpus is None
    assert not ask("SGL102", one)


def test_services_that_would_only_change_places() -> None:
    chat, code = (
        service(name=name, gpus=gpus, args={"port": port, "pp_size": 2})
        for name, gpus, port in (("chat", [0, 1], 30001), ("code", [2, 3], 30002))
    )
    swapped = (chat.model_copy(update={"gpus": code.gpus}), code.model_copy(update={"gpus": chat.gpus}))
    there = host_state({one.name: converged(release(one)) for one in (chat, code)})
    assert messages("SGL826", replace(host_view(*swapped), state=there)) == [
        "chat and code would each start on GPUs or a port that another of them still has"
    ]
    assert messages("SGL826", replace(host_view(chat, code), state=there)) == []
