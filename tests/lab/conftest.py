"""The lab tier's hosts: one lab per test process, booted once, cleaned between tests.

    def test_something(hosts): ...          # four clean hosts, running
    def test_one(host): ...                 # the first of them
    def test_look(lab): ...                 # the lab as earlier tests left it, not to be changed

A test changes what it likes: a host that was asked for gets a new disk before the next test that asks for it.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import Host, Lab
from tests.lab.incidents import heal, make_serving
from tests.lab.operator import STATE, Operator

HERE = Path(__file__).parent
HOSTS = 4
REASON = "the lab tier boots systemd hosts: it needs Linux and root"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this tier, and skip all of it where hosts cannot boot."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.lab)
            if sys.platform != "linux" or os.geteuid() != 0:
                item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab of this test process's own; it is gone afterwards, whatever happened."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    # Two runs of the tests on one machine need names of their own.
    running = Lab(os.environ.get("SGLANG_FLEET_TEST_LAB", "test") + worker)
    running.down()  # what a killed run left
    try:
        running.up(hosts=HOSTS)
        yield running
    finally:
        running.down()


@pytest.fixture
def hosts(lab: Lab) -> list[Host]:
    """All hosts of the lab, running, each with a disk that nobody wrote to."""
    used = [host for host in lab.hosts if not host.is_pristine]
    if used:
        lab.reset(*used)
    for host in lab.hosts:
        host.mark_used()
    return lab.hosts


@pytest.fixture
def host(lab: Lab) -> Host:
    """The first host, running, with a disk that nobody wrote to."""
    first = lab.hosts[0]
    if not first.is_pristine:
        lab.reset(first)
    first.mark_used()
    return first


@pytest.fixture
def operator(lab: Lab, tmp_path: Path) -> Operator:
    """An operator with a deployment folder for all hosts of the lab, however the tests before left those.

    But for their locks: a test that plays a run may have left one that would keep this operator out for a minute.
    """
    for host in lab.hosts:
        host.mark_used()
        host.run(f"rm -f {STATE}/lock.json")
    return Operator(lab, tmp_path)


@pytest.fixture
def serving(operator: Operator) -> Operator:
    """An operator whose hosts all run one release, whichever, proven."""
    make_serving(operator)
    return operator


@pytest.fixture
def healed(lab: Lab) -> Iterator[None]:
    """Takes away, after the test, whatever it broke on the hosts."""
    yield
    heal(lab.hosts)


@pytest.fixture
def deployed(operator: Operator) -> Operator:
    """An operator whose hosts all run the release of `SETTINGS`, proven."""
    done = operator.deploy()
    assert done.status == 0, done.text
    return operator
