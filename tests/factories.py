"""Ready-made specs, releases and observations for tests; each call may change what matters to the test."""

from dataclasses import replace
from typing import Any

from sglang_fleet.observe import (
    Disk,
    Gpu,
    HostState,
    OperatingSystem,
    Proven,
    ServiceState,
    Toolkit,
    UnitFile,
    Unknown,
    User,
)
from sglang_fleet.release import Release, make_release
from sglang_fleet.spec import Cuda, Deployment, Service, Sglang
from sglang_fleet.spec.arguments import Arguments

ARGUMENTS: dict[str, Any] = {
    "model_path": "/root/models/Kimi-K2.6",
    "port": 30001,
    "host": "0.0.0.0",  # noqa: S104 - the story's own
    "tp_size": 1,
    "pp_size": 8,
}
NOTHING_INSTALLED = ServiceState(
    unit=None,
    fragment="",
    dropins=(),
    load="not-found",
    active="inactive",
    sub="dead",
    result="success",
    enabled="",
    needs_reload=False,
    main_pid=0,
    restarts=0,
    invocation="",
    active_since=None,
    running_release=None,
    installed_release=None,
    installed_service=None,
    releases=(),
    proven=(),
    last_activation=None,
    release_manifest=None,
    environment_file=None,
)


def service(**changes: Any) -> Service:
    """The story's service; `args` are added to its arguments, everything else replaces."""
    args = Arguments.model_validate({**ARGUMENTS, **changes.pop("args", {})})
    return Service.model_validate({"name": "k26", "user": "root", "args": args, **changes})


def deployment(*services: Service, **cuda: Any) -> Deployment:
    """A spec with these services, or with the story's."""
    return Deployment(
        cuda=Cuda.model_validate({"version": "13.0", "source": "apt", "minimum_driver": 580, **cuda}),
        sglang=Sglang(version="0.5.23", requirements="locks/sglang-0.5.23-cu130.txt"),
        services={one.name: one for one in services or (service(),)},
    )


def release(one: Service | None = None, *, secrets: dict[str, str] | None = None, venv_id: str = "venv1") -> Release:
    """What a service's spec asks for; a secret's fingerprint here is simply its value reversed."""
    values = secrets or {}
    return make_release(
        service=one or service(),
        version="0.5.23",
        venv_id=venv_id,
        cuda_home="/usr/local/cuda-13.0",
        secrets=values,
        fingerprints={name: value[::-1] for name, value in values.items()},
    )


def converged(wanted: Release) -> ServiceState:
    """A service whose running, proven release is the one wanted."""
    return replace(
        NOTHING_INSTALLED,
        unit=UnitFile(kind="file", target=None, mode="0644", text=wanted.text("unit").encode()),
        fragment=f"/etc/systemd/system/{wanted.unit_name}",
        load="loaded",
        active="active",
        sub="running",
        enabled="enabled",
        main_pid=100,
        running_release=wanted.id,
        installed_release=wanted.id,
        installed_service=wanted.service,
        releases=(wanted.id,),
        proven=(Proven(release=wanted.id, proven_at="2026-11-01T00:00:00+00:00", activation="a1"),),
        release_manifest=wanted.manifest(created_at="2026-11-01T00:00:00+00:00", created_by="somebody"),
        environment_file=wanted.text("environment").encode(),
    )


def handwritten(text: bytes) -> ServiceState:
    """A unit that somebody wrote by hand, running."""
    return replace(
        NOTHING_INSTALLED,
        unit=UnitFile(kind="file", target=None, mode="0644", text=text),
        load="loaded",
        active="active",
        sub="running",
        enabled="enabled",
        main_pid=100,
    )


def host_state(services: dict[str, ServiceState], **changes: Any) -> HostState:
    """A host with eight RTX PRO 6000 on which everything but the services is in place."""
    state = HostState(
        euid=0,
        hostname="h1",
        machine_id=Unknown("not read"),  # so that no two are the same machine
        boot_id=Unknown("not read"),
        arch="x86_64",
        python="3.11.2",
        os=OperatingSystem(id="debian", version_id="12", codename="bookworm"),
        glibc="2.36",
        systemd=252,
        pythons={"python3": "/usr/bin/python3"},
        users={"root": User(uid=0, home="/root")},
        gpus=tuple(
            Gpu(
                index=index,
                uuid=f"GPU-{index}",
                name="NVIDIA RTX PRO 6000 Blackwell Server Edition",
                memory_total_mib=97887,
                memory_used_mib=4,
                compute_cap="12.0",
            )
            for index in range(8)
        ),
        driver="580.95.05",
        compute=(),
        iommu=(),
        persistenced=True,
        interfaces=("eth0", "lo"),
        listeners={30001: ()},
        disk=Disk(state_free_bytes=10**12, tmp_free_bytes=10**12),
        toolkit=Toolkit(home="/usr/local/cuda-13.0", version="13.0.2"),
        toolkit_verified=True,
        models={},
        venvs=("venv1",),
        programs=(),
        services=services,
        leftovers={},
    )
    return replace(state, **changes)
