"""The hosts of the running lab, for pyinfra: `python -m lab up`, then `pyinfra inventory/lab.py deploy.py`.

SGLANG_FLEET_LAB_NAME chooses the lab (default `lab`); SGLANG_FLEET_LAB_USER=operator logs in without root,
with sudo.
"""

import os

from pyinfra.api.exceptions import InventoryError

from lab import Lab, LabError, network
from lab.fleet import host_data


def _hosts() -> list[tuple[str, dict[str, object]]]:
    running = Lab(os.environ.get("SGLANG_FLEET_LAB_NAME", "lab"))
    # The hosts' addresses exist only inside the lab's network; elsewhere they would be somebody else's. So
    # this process goes there first, whether or not it was started by `python -m lab run`.
    network.enter(running.name)
    user = os.environ.get("SGLANG_FLEET_LAB_USER", "root")
    return [(host.name, host_data(running, host, user=user)) for host in running.hosts]


try:
    lab = _hosts()
except LabError as error:
    raise InventoryError(str(error)) from None
