"""Two lab hosts that run SGLang itself, and an operator who deploys to them."""

import copy
import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from lab import Host, Lab, network
from lab.demo_real import REAL
from lab.real import index
from tests.lab.commands import Ended, run
from tests.lab.operator import Operator, Ran
from tests.real.hosts import anyfleet
from tests.real.hosts.anyfleet import AnyFleet, AnyHost

NEWEST, OLDER = index.RELEASES
SERVICE = "tiny"
UNIT = f"sglang-{SERVICE}.service"
PORT = 30001
API_KEY = "poison-7c1e44-real-api-key"  # found nowhere but in the files meant for it
MODEL = "/srv/models/real-tiny"
PROMPT = anyfleet.PROMPT
ANSWER = " w215 w241 w74 w59 w18 w236 w8 w94"
"""What the model says to PROMPT without sampling, in eight tokens: in each release, with any number of stages."""

_YAML = YAML(typ="safe", pure=True)
_SETTINGS: dict[str, Any] = _YAML.load(REAL / "settings.yml")
_OLDER: dict[str, Any] = _YAML.load(REAL / "older.yml")

ONE_STAGE: dict[str, Any] = _OLDER["services"][SERVICE]["args"]
"""Changes to the arguments for a server in one piece, which is all that 0.5.9 can be on a CPU."""

ONE_RANK: dict[str, str] = _OLDER["services"][SERVICE]["environment"]
"""And to its environment."""


def base(version: str = NEWEST) -> dict[str, Any]:
    """The settings that every test starts from: lab/real/settings.yml, for a release."""
    return _merged(_SETTINGS, {"sglang": {"version": version, "requirements": f"locks/{index.lock_of(version).name}"}})


@dataclass
class RealFleet(AnyFleet):
    """A deployment folder for the lab's hosts, and what its user can ask.

    The inventory has every host until `use` says otherwise.

    Attributes:
        folder: the deployment folder.
        operator: what runs pyinfra in it.
    """

    lab: Lab
    folder: Path
    operator: Operator = field(init=False)

    service, unit, port, answer, inventory = SERVICE, UNIT, PORT, ANSWER, "fleet.py"

    def __post_init__(self) -> None:
        self.operator = Operator(self.lab, self.folder, environment={"TINY_API_KEY": API_KEY})
        self.write(base())

    @property
    def hosts(self) -> list[Host]:
        """The lab's hosts, in order."""
        return self.lab.hosts

    @property
    def key(self) -> str:
        """What the servers are asked with."""
        return self.operator.environment["TINY_API_KEY"]

    def change(self, **changes: Any) -> None:
        """Write the base settings with changes to the service, as `settings` takes them."""
        self.write(self.settings(**changes))

    def use(self, *names: str, groups: Mapping[str, list[str]] | None = None) -> None:
        """Write an inventory of these hosts only, in this order; with groups they know their own addresses."""
        self.operator.hosts(names, groups=groups)

    def settings(self, *, version: str = NEWEST, **changes: Any) -> dict[str, Any]:
        """The base settings for a release, with changes to the service: mappings are merged, None removes a key."""
        tree = base(version)
        tree["services"][SERVICE] = _merged(tree["services"][SERVICE], changes)
        return tree

    def write(self, settings: Mapping[str, Any], per_host: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Write group_vars/all.yml, and host_vars for the hosts named; those written before are gone."""
        self.operator.settings(settings)
        for path in self.folder.glob("host_vars/*.yml"):
            path.unlink()
        for name, tree in (per_host or {}).items():
            self.operator.settings(tree, file=f"host_vars/{name}.yml")

    def deploy(self, *words: str, seconds: float = 600) -> Ran:
        """`pyinfra fleet.py deploy.py -y`; with `--dry` in the words nothing is changed."""
        return self.operator.run(*words, seconds=seconds)

    def plan(self) -> Ran:
        """`pyinfra fleet.py deploy.py --dry --diff`."""
        return self.operator.plan()

    def rollback(self, *words: str, seconds: float = 600) -> Ran:
        """`pyinfra fleet.py rollback.py -y`."""
        return self.operator.run(*words, script="rollback.py", seconds=seconds)

    def cli(self, *words: str, seconds: float = 600) -> Ended:
        """`sglang-fleet WORDS` in the folder; its streams apart."""
        return run(self.operator, *words, seconds=seconds)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`pyinfra fleet.py deploy.py WORDS`, not waited for."""
        return self.operator.start(*words)

    def link(self, host: AnyHost, port: int, *, timeout: float) -> socket.socket:
        """A connection to a port of a host, from the lab's network. Raises OSError."""
        return network.connect(self.lab.name, host.address, port, timeout=timeout)


class FirstHost(RealFleet):
    """The same with the lab's first host alone."""

    def __post_init__(self) -> None:
        """Name no other in the inventory."""
        super().__post_init__()
        self.use("h1")

    @property
    def hosts(self) -> list[Host]:
        """One host."""
        return super().hosts[:1]


def name() -> str:
    """The lab's name: of its own, so that other tests of this machine are not disturbed."""
    return os.environ.get("SGLANG_FLEET_TEST_LAB", "real") + os.environ.get("PYTEST_XDIST_WORKER", "")


def _merged(tree: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = copy.deepcopy(dict(tree))
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = _merged(merged[key], value)
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged
