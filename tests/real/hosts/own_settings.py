"""What an operator's settings say of the one service that is to be tested: a program that prints it as JSON.

python -m tests.real.hosts.own_settings INVENTORY FOLDER
"""

import json
import os
import sys
from typing import Any

from roles.inventory import read_inventory
from sglang_fleet.cli.common import load_settings
from sglang_fleet.problems import render
from tests.real.hosts.own import SSH_OPTIONS, Unusable


def describe(inventory: str) -> dict[str, Any]:
    """Service, unit, port, hosts with what the inventory says of each, and where the secrets are.

    Raises:
        Unusable: there is not exactly one service that these tests can ask.
    """
    settings = load_settings(inventory)
    if settings.loaded.problems:
        raise Unusable(render(settings.loaded.problems))
    found = [
        (name, service) for spec in settings.loaded.deployments.values() for name, service in spec.services.items()
    ]
    seen = {(name, service.unit_name, service.args.port, str(service.secrets)) for name, service in found}
    if len(seen) != 1 or len(found) != len(settings.hosts):
        raise Unusable(f"{inventory} has to give each of its hosts one and the same service, and no other")
    service = found[0][1]
    arguments = dict(service.args.ordered())
    for name in ("ssl_certfile", "is_embedding", "skip_tokenizer_init"):
        if arguments.get(name):
            raise Unusable(f"these tests ask for completions of texts over plain HTTP, and {service.name} has {name}")
    if service.nodes > 1:
        raise Unusable(f"{service.name} has several nodes: these tests know services of one host each")
    data = read_inventory(inventory, folder=settings.folder).data
    if strange := [name for name in data if name.startswith("@") or "ssh_password" in data[name]]:
        raise Unusable(f"these tests reach hosts by ssh with a key, and not {', '.join(strange)}")
    wanted = {*SSH_OPTIONS, "ssh_hostname", "ssh_config_file", "_sudo"}
    return {
        "service": service.name,
        "unit": service.unit_name,
        "port": service.args.port,
        "hosts": {name: {key: beside[key] for key in wanted & beside.keys()} for name, beside in data.items()},
        "secrets": {name: source.model_dump(exclude_none=True) for name, source in service.secrets.items()},
    }


if __name__ == "__main__":
    os.chdir(sys.argv[2])
    try:
        print(json.dumps(describe(sys.argv[1])))  # noqa: T201 - for who has started it
    except Exception as error:  # noqa: BLE001 - whatever it is, the operator reads it
        sys.exit(str(error))
