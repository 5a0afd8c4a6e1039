"""Where each variable of the old start goes."""

from __future__ import annotations

import pytest

from tests.unit.importing.support import imported, notes, only

SERVER = "python3 -m sglang.launch_server --model-path /m"


@pytest.mark.parametrize(
    ("name", "value", "key", "setting"),
    [
        ("NCCL_P2P_LEVEL", "5", "p2p_level", 5),
        ("NCCL_P2P_LEVEL", "PXB", "p2p_level", "PXB"),
        ("NCCL_IB_DISABLE", "1", "ib_disable", True),
        ("NCCL_IB_DISABLE", "0", "ib_disable", False),
        ("NCCL_CROSS_NIC", "1", "cross_nic", 1),
        ("NCCL_SOCKET_IFNAME", "=eth0", "socket_ifname", "=eth0"),
        ("NCCL_ALGO", "^Tree", "algo", "^Tree"),
    ],
)
def test_ncclss_variables_get_keys_that_render_the_same(name: str, value: str, key: str, setting: object) -> None:
    service = only(imported(f"{name}={value} {SERVER}"))
    assert service["nccl"] == {key: setting}
    assert service["environment"] == {}


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("NCCL_P2P_LEVEL", "pxb", "is ignored by NCCL"),
        ("NCCL_IB_DISABLE", "true", "nccl.ib_disable takes no such value"),
        ("NCCL_P2P_LEVEL", "05", ""),
        ("NCCL_BUFFSIZE", "4M", "nccl.buffsize takes no such value"),
        ("NCCL_ALGO", "Circle", "has a word that NCCL does not know"),
        ("NCCL_LAUNCH_MODE", "PARALLEL", ""),
    ],
)
def test_what_the_keys_would_change_stays_a_variable(name: str, value: str, why: str) -> None:
    found = imported(f"{name}={value} {SERVER}")
    assert only(found)["environment"] | only(found).get("nccl", {}) == (
        {name: value} if name != "NCCL_P2P_LEVEL" or value != "05" else {"p2p_level": "05"}
    )
    assert why in notes(found)


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LD_LIBRARY_PATH", "CUDA_HOME", "VIRTUAL_ENV", "TRITON_CACHE_DIR", "XDG_CACHE_HOME"]
)
def test_what_the_product_sets_itself_is_left_out_and_named(name: str) -> None:
    found = imported(f"{name}=/x {SERVER}")
    assert only(found)["environment"] == {}
    assert f"1: {name}: left out" in notes(found)


def test_what_is_equal_to_the_products_own_is_left_out_without_a_word() -> None:
    found = imported(f"PYTHONUNBUFFERED=1 MAX_JOBS=8 {SERVER}")
    assert only(found)["environment"] == {}
    assert "MAX_JOBS" not in notes(found)


@pytest.mark.parametrize(
    ("value", "gpus"),
    [("0,1", [0, 1]), ("3", [3]), ("0, 2", [0, 2]), ("", None), ("GPU-1", None), ("0,0", None), ("-1", None)],
)
def test_visible_devices_become_gpus_when_they_are_plain_indices(value: str, gpus: list[int] | None) -> None:
    found = imported(f"CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES='{value}' {SERVER}")
    assert only(found).get("gpus") == gpus
    assert ("CUDA_VISIBLE_DEVICES" in notes(found)) == (gpus is None)
    assert only(found)["environment"] == ({} if gpus else {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})


def test_the_order_of_the_source_is_kept() -> None:
    found = imported(f"export Z=1\nexport A=2\nM=3 {SERVER}")
    assert list(only(found)["environment"]) == ["Z", "A", "M"]


def test_a_variable_that_hides_packages_is_kept_and_named() -> None:
    found = imported(f"PYTHONPATH=/opt/patched {SERVER}")
    assert only(found)["environment"] == {"PYTHONPATH": "/opt/patched"}
    assert "PYTHONPATH may bring packages" in notes(found)
