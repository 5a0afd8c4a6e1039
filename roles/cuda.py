"""The CUDA toolkit: installed from the source the settings name, and verified by compiling with it."""

from typing import Any

from pyinfra import host
from pyinfra.api import deploy

from roles.fleet import Fleet
from roles.installer import UV
from roles.steps import host_step
from sglang_fleet.addresses import requirements_text
from sglang_fleet.release import cuda_wheels_home
from sglang_fleet.rollout import Wave

DEADLINE_SECONDS = 3600


@deploy("CUDA")
def install(fleet: Fleet, wave: Wave) -> None:
    """Install and verify the toolkit on hosts whose probe did not find it verified."""
    if fleet.plans[host.name].cuda:
        host_step(
            name=f"{wave}: toolkit {fleet.deployments[host.name].cuda.version}",
            fleet=fleet,
            wave=wave,
            command="cuda",
            request=_request(fleet),
        )


def _request(fleet: Fleet) -> dict[str, Any]:
    deployment = fleet.deployments[host.name]
    cuda, sglang = deployment.cuda, deployment.sglang
    request: dict[str, Any] = {
        "source": cuda.source,
        "version": cuda.version,
        "home": fleet.releases[host.name][0].places.cuda_home,
        "repository": cuda.repository,
        "keyring_sha256": cuda.keyring_sha256,
        "architectures": list(fleet.plans[host.name].architectures),
        "deadline": DEADLINE_SECONDS,
    }
    if cuda.source == "wheels" and cuda.requirements is not None:
        text = requirements_text(fleet.folder, cuda.requirements)
        request |= {
            "requirements": text,
            "cuda_id": cuda_wheels_home(text)[0],
            "index_url": sglang.index_url,
            "find_links": list(sglang.find_links),
            "uv": UV,
            "python": sglang.python,
        }
    return request
