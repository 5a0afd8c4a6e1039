"""The model folder: whole, and readable to the account the server will run as."""

from typing import Any

from sglang_fleet.plan import HostPlan
from sglang_fleet.spec import Deployment


def check_request(deployment: Deployment, plan: HostPlan) -> dict[str, Any]:
    """What to look at again just before the switch; empty for nothing.

    The probe may be hours old, and could not read as the service's account.
    """
    services = [service for name, service in deployment.services.items() if name in plan.changes]
    models = sorted(
        (service.args.model_path, service.user) for service in services if service.args.model_path.startswith("/")
    )
    folders = sorted(
        path
        for service in services
        for path in (*service.writable_paths, *([service.working_directory] if service.working_directory else []))
    )
    if not models and not folders:
        return {}
    return {"models": [{"path": path, "user": user} for path, user in models], "folders": folders}
