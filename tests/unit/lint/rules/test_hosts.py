"""What a host must be; what these rules say word by word is tested with what refuses hosts."""

from dataclasses import replace

import pytest

from sglang_fleet.lint.views import HostView
from sglang_fleet.observe import ComputeProcess, Unknown
from tests.factories import NOTHING_INSTALLED, deployment, host_state, release, service
from tests.unit.lint.host_views import host_view, messages
from tests.unit.lint.views import rule


@pytest.mark.parametrize(
    ("version", "minimum", "driver", "said"),
    [
        ("13.0", 570, "575.1", True),
        ("13.0", 570, "580.1", False),
        ("13.0", 570, "560.1", False),  # below the minimum: another rule says so
        ("13.0", 580, "580.95.05", False),
        ("12.9", 520, "524.1", True),
        ("12.9", 520, "525.1", False),
        ("14.0", 1, "580.1", False),  # nobody knows yet
    ],
)
def test_every_cuda_has_an_oldest_driver(version: str, minimum: int, driver: str, said: bool) -> None:  # noqa: FBT001 - a case
    one = host_view(cuda={"version": version, "minimum_driver": minimum}, driver=driver)
    assert len(messages("SGL810", one)) == said


def test_a_service_that_brings_compatibility_libraries_needs_no_newer_driver() -> None:
    one = service(environment={"LD_LIBRARY_PATH": "/usr/local/cuda-13.0/compat"})
    assert messages("SGL810", host_view(one, cuda={"minimum_driver": 570}, driver="575.1")) == []


def test_a_service_of_root_needs_the_account() -> None:
    assert messages("SGL807", host_view(service(user="root"), users={"root": None})) == ["there is no account root"]
    assert messages("SGL807", host_view(service(user="sglang"), users={"root": None})) == []
    assert messages("SGL807", host_view(service(user="root"))) == []


ON_CPU = service(args={"device": "cpu"})
BESIDE = service(name="other", gpus=[1], args={"port": 30002, "pp_size": 1})
HOLDERS = tuple(ComputeProcess(pid=9, command="x", unit=None, gpu_uuid=f"GPU-{gpu}", used_mib=1) for gpu in (0, 1))


@pytest.mark.parametrize("driver", [None, "470.1"])
def test_a_service_on_the_cpu_needs_no_driver(driver: str | None) -> None:
    assert messages("SGL803", host_view(ON_CPU, driver=driver)) == []
    assert len(messages("SGL803", host_view(ON_CPU, BESIDE, driver=driver))) == 1


def test_a_service_on_the_cpu_needs_no_driver_for_its_cuda() -> None:
    cuda = {"minimum_driver": 570}
    assert messages("SGL810", host_view(ON_CPU, cuda=cuda, driver="575.1")) == []
    assert len(messages("SGL810", host_view(ON_CPU, BESIDE, cuda=cuda, driver="575.1"))) == 1


def test_a_service_on_the_cpu_needs_no_gpus() -> None:
    named = service(gpus=[8, 9, 10, 11, 12, 13, 14, 15], args={"device": "cpu"})
    assert messages("SGL804", host_view(named)) == []
    (said,) = messages("SGL804", host_view(ON_CPU, BESIDE, gpus=()))
    assert said == "services.other.gpus names GPU 1; the host has none"


def test_a_service_on_the_cpu_shares_gpus_with_anybody() -> None:
    assert messages("SGL809", host_view(ON_CPU, compute=HOLDERS)) == []
    assert messages("SGL809", host_view(ON_CPU, BESIDE, compute=HOLDERS)) == ["GPU 1 is held by x (pid 9)"]


MANIFEST = "/var/lib/sglang-fleet/services/k26/releases/0123456789abcdef/release.json"


def unread_manifest(why: str) -> tuple[str, str]:
    """What is said of a host whose installed release's manifest could not be read, and what to do."""
    state = replace(NOTHING_INSTALLED, release_manifest=Unknown(why))
    view = HostView(deployment(service()), host_state({"k26": state}), (release(),))
    (found,) = rule("SGL802").check(view)
    return found.message, found.fix


@pytest.mark.parametrize("why", ["not JSON", "not one JSON value", "not a JSON object"])
def test_a_damaged_manifest_has_a_way_out(why: str) -> None:
    said, fix = unread_manifest(f"{MANIFEST}: {why}")
    assert said == f"services.k26.release_manifest could not be read: {MANIFEST}: {why}"
    assert f"remove {MANIFEST}, which no server reads, and run again" in fix


@pytest.mark.parametrize("why", ["/x/proven.json: not JSON", f"{MANIFEST}: Input/output error"])
def test_for_what_must_not_be_removed_the_cause_is_to_be_seen_to(why: str) -> None:
    assert unread_manifest(why)[1] == "what is not known is never changed: see to the cause, and run again"
