"""The SGLang venv: one immutable folder for each lock file, built beside and moved into place."""

from pyinfra import host
from pyinfra.api import deploy

from roles.fleet import Fleet
from roles.installer import UV
from roles.steps import host_step
from sglang_fleet.addresses import requirements_text
from sglang_fleet.rollout import Wave

DEADLINE_SECONDS = 3600


@deploy("SGLang")
def install(fleet: Fleet, wave: Wave) -> None:
    """Create the service accounts and build the venvs that are not on the host yet."""
    plan, sglang = fleet.plans[host.name], fleet.deployments[host.name].sglang
    if plan.accounts:
        host_step(
            name=f"{wave}: account {', '.join(plan.accounts)}",
            fleet=fleet,
            wave=wave,
            command="account",
            request={"users": list(plan.accounts)},
        )
    for venv_id in host.loop(plan.venvs):
        host_step(
            name=f"{wave}: venv {sglang.version}",
            fleet=fleet,
            wave=wave,
            command="venv",
            request={
                "venv_id": venv_id,
                "requirements": requirements_text(fleet.folder, sglang.requirements),
                "python": sglang.python,
                "index_url": sglang.index_url,
                "find_links": list(sglang.find_links),
                "uv": UV,
                "package": "sglang",
                "version": sglang.version,
                "imports": ["sglang"],
                "user": fleet.releases[host.name][0].user,
                "deadline": DEADLINE_SECONDS,
            },
        )
