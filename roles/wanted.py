"""What the settings ask for, host by host: specs, secrets, releases, and what to ask the probe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sglang_fleet.addresses import cuda_home, venv_id
from sglang_fleet.problems import Problem
from sglang_fleet.release import Release, make_release
from sglang_fleet.render import STATE
from sglang_fleet.secret_values import SecretUnavailable, fingerprint, read_secret
from sglang_fleet.spec import Deployment, Loaded, SecretSource, is_argument


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted state of every host whose settings hold, and the problems of the others."""

    deployments: Mapping[str, Deployment]
    releases: Mapping[str, tuple[Release, ...]]
    problems: Sequence[Problem]
    secret_values: tuple[str, ...]


def probe_request(deployment: Deployment, *, folder: Path) -> dict[str, Any]:
    """What the probe has to look for on a host of this spec."""
    services = deployment.services
    return {
        "state": STATE,
        "services": {
            name: {"unit": service.unit_name, "port": service.args.port, "gpus": service.gpus}
            for name, service in services.items()
        },
        "models": sorted({s.args.model_path for s in services.values() if s.args.model_path.startswith("/")}),
        "cuda": {"version": deployment.cuda.version, "home": cuda_home(folder, deployment)},
        "users": sorted({service.user for service in services.values()}),
        "pythons": [deployment.sglang.python],
    }


def want(loaded: Loaded, *, folder: Path) -> Wanted:
    """Read the secrets and make the releases of all hosts; every error of every host is in `problems`."""
    problems = list(loaded.problems)
    made: dict[int, _Made] = {}
    values = _Values(folder)
    for host, deployment in loaded.deployments.items():
        if id(deployment) not in made:
            made[id(deployment)] = _make(folder, deployment, values)
        for key, error in made[id(deployment)].failures.items():
            problems.append(loaded.problem(host, key, str(error), fix=error.fix))
    usable = {host: spec for host, spec in loaded.deployments.items() if not made[id(spec)].failures}
    return Wanted(
        deployments=usable,
        releases={host: made[id(spec)].releases for host, spec in usable.items()},
        problems=problems,
        secret_values=tuple({value for one in made.values() for value in one.secret_values}),
    )


@dataclass(slots=True)
class _Made:
    """What one spec, which many hosts may share, comes to."""

    releases: tuple[Release, ...] = ()
    failures: dict[str, SecretUnavailable] = field(default_factory=dict)
    secret_values: set[str] = field(default_factory=set)


class _Values:
    """Secrets, each read once in a run, however many hosts have it: a command may ask somebody, or make a new one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[SecretSource, bool], str | SecretUnavailable] = {}

    def read(self, name: str, source: SecretSource) -> str:
        """The value. Raises SecretUnavailable."""
        key = (source, is_argument(name))
        if key not in self._known:
            try:
                self._known[key] = read_secret(source, name=name, folder=self._folder)
            except SecretUnavailable as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, SecretUnavailable):
            raise found
        return found


def _make(folder: Path, deployment: Deployment, values: _Values) -> _Made:
    made = _Made()
    venv, home = venv_id(folder, deployment), cuda_home(folder, deployment)
    for name, service in deployment.services.items():
        secrets: dict[str, str] = {}
        for key, source in service.secrets.items():
            try:
                secrets[key] = values.read(key, source)
            except SecretUnavailable as error:
                made.failures[f"services.{name}.secrets.{key}"] = error
        made.secret_values |= set(secrets.values())
        made.releases += (
            make_release(
                service=service,
                version=deployment.sglang.version,
                venv_id=venv,
                cuda_home=home,
                secrets=secrets,
                fingerprints={key: fingerprint(key, value) for key, value in secrets.items()},
            ),
        )
    return made
