"""NCCL's variables."""

from typing import Any

import pytest

from sglang_fleet.lint.found import Remove, Set
from tests.unit.lint.views import ask, view

TWO = {"tp_size": 2}


@pytest.mark.parametrize(
    ("rule", "args", "nccl", "keys"),
    [
        ("SGL501", {}, {"p2p_disable": True, "p2p_level": "SYS"}, ["p2p_level"]),
        ("SGL501", {}, {"p2p_disable": True}, []),
        ("SGL501", {}, {"p2p_disable": False, "p2p_level": 5}, []),
        ("SGL501", {}, {"p2p_level": 9}, []),  # beyond SYS is SYS
        ("SGL502", TWO, {"p2p_disable": True, "shm_disable": True}, ["shm_disable"]),
        ("SGL502", TWO, {"shm_disable": True}, []),
        ("SGL502", {}, {"p2p_disable": True, "shm_disable": True}, []),  # one GPU talks to nobody
        ("SGL506", {}, {"ib_disable": True, "ib_hca": "mlx5", "ib_timeout": 22}, ["ib_hca", "ib_timeout"]),
        ("SGL506", {}, {"ib_disable": False, "ib_hca": "mlx5"}, []),
        ("SGL506", {}, {"ib_disable": True}, []),
        ("SGL507", TWO, {"ib_disable": True, "net": "ib"}, ["net"]),
        ("SGL507", TWO, {"ib_disable": True, "net": "Socket"}, []),
        ("SGL507", TWO, {"net": "IB"}, []),
        ("SGL507", {}, {"ib_disable": True, "net": "IB"}, []),
        ("SGL508", {}, {"debug": "TRACE"}, ["debug"]),
        ("SGL508", {}, {"debug": "info", "debug_subsys": "INIT, COLL"}, ["debug"]),
        ("SGL508", {}, {"debug": "INFO"}, []),
        ("SGL508", {}, {"debug": "INFO", "debug_subsys": "INIT,GRAPH"}, []),
        ("SGL508", {}, {"debug": "WARN", "debug_subsys": "ALL"}, []),
        ("SGL509", {"enable_nccl_nvls": True}, {"nvls_enable": False}, ["nvls_enable"]),
        (
            "SGL509",
            {"enable_symm_mem": True},
            {"nvls_enable": False, "cumem_enable": False},
            ["nvls_enable", "cumem_enable"],
        ),
        ("SGL509", {"enable_nccl_nvls": True}, {"nvls_enable": True, "cumem_enable": False}, []),
        ("SGL509", {}, {"nvls_enable": False, "cumem_enable": False}, []),
    ],
)
def test_settings_that_cancel_each_other(
    rule: str, args: dict[str, Any], nccl: dict[str, Any], keys: list[str]
) -> None:
    assert [found.key for found in ask(rule, view(args, nccl=nccl))] == [f"services.k26.nccl.{key}" for key in keys]


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("NCCL_P2P_LEVEL", "SYS", "p2p_level", "SYS"),
        ("NCCL_IB_DISABLE", "1", "ib_disable", True),
        ("NCCL_IB_DISABLE", "0", "ib_disable", False),
        ("NCCL_CROSS_NIC", "1", "cross_nic", 1),
        ("NCCL_P2P_LEVEL", "5", "p2p_level", "5"),
        ("NCCL_SOCKET_IFNAME", "^docker", "socket_ifname", "^docker"),
        ("NCCL_NTHREADS", "256", "nthreads", 256),
    ],
)
def test_a_variable_with_a_field_is_moved_there(name: str, text: str, field: str, value: object) -> None:
    one = view(environment={name: text})
    (found,) = ask("SGL503", one)
    old = f"services.k26.environment.{name}"
    assert found.edits == (Set(f"services.k26.nccl.{field}", value, instead_of=old), Remove(old))  # type: ignore[arg-type]
    assert found.safe
    moved = view(nccl={field: value})
    assert moved.environment == one.environment
    assert ask("SGL504", one) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("NCCL_P2P_LEVEL", "sys"), ("NCCL_ALGO", "Rings"), ("NCCL_IB_DISABLE", "yes"), ("NCCL_CROSS_NIC", "01")],
)
def test_a_value_that_nccl_does_not_know_is_told_and_not_moved(name: str, text: str) -> None:
    one = view(environment={name: text})
    assert [found.key for found in ask("SGL504", one)] == [f"services.k26.environment.{name}"]
    assert ask("SGL503", one) == []


@pytest.mark.parametrize("name", ["NCCL_TOPO_DUMP_FILE", "SGLANG_ENABLE_JIT_DEEPGEMM", "nccl_algo"])
def test_other_variables_have_no_field(name: str) -> None:
    one = view(environment={name: "x"})
    assert [*ask("SGL503", one), *ask("SGL504", one)] == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NCCL_P2P_LEVL", "NCCL_P2P_LEVEL"),
        ("NCCL_IB_DISABLED", "NCCL_IB_DISABLE"),
        ("NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"),
        ("NCCL_DEBUG_SUBSYSTEM", "NCCL_DEBUG_SUBSYS"),
        ("NCCL_TOPO_DUMP_FILES", "NCCL_TOPO_DUMP_FILE"),
    ],
)
def test_a_misspelt_variable_is_told(name: str, meant: str) -> None:
    (found,) = ask("SGL505", view(environment={name: "1"}))
    assert meant in found.message


@pytest.mark.parametrize(
    "name",
    [
        "NCCL_P2P_LEVEL",
        "NCCL_IB_TC",
        "NCCL_TREE_THRESHOLD",
        "NCCL_CHECKS_DISABLE",
        "NCCL_ASYNC_ERROR_HANDLING",
        "NCCL_OFI_MR_CACHE",  # a plugin's
        "NCCL_GPUDIRECTTCPX_FORCE_ACK",
        "NCCL_FASTRAK_NUM_FLOWS",
        "SGLANG_NCCL_SO_PATH",
        "NCLL_DEBUG",
    ],
)
def test_variables_of_nccl_and_of_its_plugins_are_left_alone(name: str) -> None:
    assert ask("SGL505", view(environment={name: "1"})) == []
