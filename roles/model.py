"""The model folder: whole, and readable to the account the server will run as."""

from pyinfra import host
from pyinfra.api import deploy

from roles.fleet import Fleet
from roles.steps import host_step
from sglang_fleet.rollout import Wave


@deploy("Model")
def check(fleet: Fleet, wave: Wave) -> None:
    """Look again just before the switch: the probe may be hours old, and could not read as the service's account."""
    deployment = fleet.deployments[host.name]
    models = sorted(
        (service.args.model_path, service.user)
        for name, service in deployment.services.items()
        if service.args.model_path.startswith("/") and name in fleet.plans[host.name].changes
    )
    folders = sorted(
        path
        for name, service in deployment.services.items()
        if name in fleet.plans[host.name].changes
        for path in (*service.writable_paths, *([service.working_directory] if service.working_directory else []))
    )
    if models or folders:
        host_step(
            name=f"{wave}: whole and readable",
            fleet=fleet,
            wave=wave,
            command="model",
            request={"models": [{"path": path, "user": user} for path, user in models], "folders": folders},
        )
