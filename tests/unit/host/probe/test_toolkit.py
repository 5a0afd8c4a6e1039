"""The CUDA toolkit."""

import json

import pytest

from sglang_fleet.observe import HostState, Unknown
from tests.unit.host.probe.folder_host import HOME, STATE, Host


def verified(host: Host, *, architectures: list[str], **changes: object) -> HostState:
    compiler = host.write(f"{HOME}/bin/nvcc", "#!/bin/sh\necho 'release 13.0, V13.0.88'\n", mode=0o755)
    marker = {
        "home": HOME,
        "version": "13.0",
        "architectures": architectures,
        "nvcc_mtime_ns": compiler.stat().st_mtime_ns,
        "nvcc_size": compiler.stat().st_size,
    }
    host.write(f"{STATE}/cuda/verified-0.json", json.dumps(marker | changes))
    return host.look()


def test_a_verified_toolkit(host: Host) -> None:
    state = verified(host, architectures=["90", "120"])
    assert (state.toolkit_verified, state.toolkit.version) == (True, "13.0.88")


@pytest.mark.parametrize("changes", [{"nvcc_size": 1}, {"home": "/x"}, {"version": "12.8"}, {"nvcc_mtime_ns": 0}])
def test_a_toolkit_that_has_changed_since_is_not_verified(host: Host, changes: dict[str, object]) -> None:
    assert verified(host, architectures=["120"], **changes).toolkit_verified is False


def test_a_toolkit_is_not_verified_for_another_gpu(host: Host) -> None:
    assert verified(host, architectures=["90"]).toolkit_verified is False


def test_a_toolkit_for_unknown_gpus_is_unknown(host: Host) -> None:
    (host.programs / "nvidia-smi").unlink()
    assert isinstance(verified(host, architectures=["120"]).toolkit_verified, Unknown)


def test_the_version_file_of_a_toolkit_is_preferred(host: Host) -> None:
    host.write(f"{HOME}/version.json", '{"cuda": {"name": "CUDA SDK", "version": "13.0.2"}}')
    assert host.look().toolkit.version == "13.0.2"


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"cuda": 1}'])
def test_f7_a_damaged_version_file_is_unknown(host: Host, content: str) -> None:
    host.write(f"{HOME}/version.json", content)
    assert isinstance(host.look().toolkit.version, Unknown)
