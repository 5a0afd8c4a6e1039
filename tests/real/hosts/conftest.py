"""Hosts for all tests of this folder, which get SGLang itself through the product's own roles: two of a lab.

Or those of an inventory of the operator's own, see docs/real.md: then what is marked `lab_only` is skipped.

Building a venv takes a minute, starting a server half of one, so that hosts are never reset: each test leaves them as
it would want to find them, and one that needs the base service running asks for `serving`, which brings it back.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import Lab
from tests.lab.operator import STATE
from tests.real.hosts.anyfleet import AnyFleet
from tests.real.hosts.fleet import FirstHost, RealFleet, base, name
from tests.real.hosts.own import INVENTORY, OwnFleet, Unusable, own_fleet

HERE = Path(__file__).parent
HOSTS = 2

OWN = pytest.StashKey[OwnFleet]()
"""The operator's fleet, where there is one."""


def pytest_configure(config: pytest.Config) -> None:
    """End, before anything is run, where an operator's own hosts cannot be tested."""
    if INVENTORY in os.environ:
        try:
            config.stash[OWN] = own_fleet(os.environ[INVENTORY])
        except Unusable as error:
            raise pytest.UsageError(str(error)) from None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip all of it where hosts cannot boot, and on an operator's own what only a lab can do."""
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        if INVENTORY in os.environ:
            for marker in item.iter_markers("lab_only"):
                item.add_marker(pytest.mark.skip(reason=f"not on hosts of one's own: {marker.args[0]}"))
        elif sys.platform != "linux" or os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="the lab boots systemd hosts: it needs Linux and root"))


@pytest.fixture(scope="package")
def real_lab() -> Iterator[Lab]:
    """A lab of two hosts whose package index has SGLang itself; it is gone afterwards, whatever happened."""
    lab = Lab(name())
    lab.down()  # what a killed run left
    try:
        lab.up(hosts=HOSTS, with_real=True)
        yield lab
    finally:
        lab.down()


@pytest.fixture(scope="package")
def own(pytestconfig: pytest.Config) -> Iterator[OwnFleet]:
    """The operator's own hosts; afterwards they run what the settings say."""
    fleet = pytestconfig.stash[OWN]
    yield fleet
    fleet.change()
    done = fleet.deploy()
    assert done.status == 0, f"the hosts do not run what the settings say:\n{done.text}"


@pytest.fixture
def fleet(real_lab: Lab, tmp_path: Path) -> RealFleet:
    """A new deployment folder with the base settings for both hosts, however the tests before left those."""
    for host in real_lab.hosts:
        host.run(f"rm -f {STATE}/lock.json")  # of a test that played a run, or was ended
    return RealFleet(real_lab, tmp_path)


@pytest.fixture
def serving(fleet: RealFleet) -> RealFleet:
    """A fleet of the first host alone, which runs the base service, proven."""
    fleet.use("h1")
    fleet.write(base())
    done = fleet.deploy()
    assert done.status == 0, done.text
    return fleet


@pytest.fixture
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> AnyFleet:
    """Whatever fleet the tests are run on; all its hosts run the base service, proven."""
    fleet: AnyFleet
    if INVENTORY in os.environ:
        fleet = request.getfixturevalue("own")
    else:
        fleet = FirstHost(request.getfixturevalue("real_lab"), tmp_path)
    fleet.change()
    done = fleet.deploy()
    assert done.status == 0, done.text
    return fleet
