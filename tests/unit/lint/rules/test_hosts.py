"""What a host must be; what these rules say word by word is tested with what refuses hosts."""

import pytest

from tests.factories import service
from tests.unit.lint.host_views import host_view, messages


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
