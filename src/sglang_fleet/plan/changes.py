"""What a plan is made of: for each host what comes before its services, and what each service needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sglang_fleet.release import Release


@dataclass(frozen=True, slots=True)
class ServiceChange:
    """What one service needs.

    Attributes:
        release: the one that is wanted.
        stage: whether its files have to be written.
        activate: whether it has to be activated.
        why: why it is activated; empty when it is not.
        before: what is installed now, in words.
        difference: what the settings change, from what was put there to what is wanted, as lines.
        summary: the same of a service that was not there, in a few lines; empty for any other.
        drift: what somebody changed on the host since, as lines; it goes away with the activation.
        restart: whether the server is started anew also where the release runs and is proven.
        started_anew: whether the server was since it was proven, by systemd or by hand; None where that is not known.
        since: when it was started, as ISO 8601; empty where that is not known.
    """

    release: Release
    stage: bool
    activate: bool
    why: str
    before: str
    difference: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    restart: bool = False
    started_anew: bool | None = None
    since: str = ""


@dataclass(frozen=True, slots=True)
class HostPlan:
    """What one host needs; nothing at all when it is converged.

    Attributes:
        account: the accounts to create.
        cuda: why the toolkit has to be installed or verified; empty when it need not.
        architectures: of the host's GPUs, as nvcc numbers them (`120`).
        venvs: the ids of the venvs to build.
    """

    host: str
    accounts: tuple[str, ...] = ()
    cuda: str = ""
    architectures: tuple[str, ...] = ()
    venvs: tuple[str, ...] = ()
    services: Mapping[str, ServiceChange] = field(default_factory=dict)

    @property
    def changes(self) -> Mapping[str, ServiceChange]:
        """The services that have something to do."""
        return {name: change for name, change in self.services.items() if change.stage or change.activate}

    @property
    def nothing_to_do(self) -> bool:
        """Whether the host already is what the spec wants."""
        return not (self.accounts or self.cuda or self.venvs or self.changes)

    @property
    def groundwork(self) -> tuple[str, ...]:
        """What has to be there before any service, each as a word to the operator."""
        return (
            *(f"create the account {user}" for user in self.accounts),
            *([self.cuda.replace("the toolkit", "the CUDA toolkit")] if self.cuda else []),
            *(f"build the venv {venv}" for venv in self.venvs),
        )

    @property
    def actions(self) -> tuple[str, ...]:
        """Everything that would be done, each as a word to the operator."""
        steps = list(self.groundwork)
        for name, change in self.changes.items():
            steps += [f"stage release {change.release.id} of {name}"] if change.stage else []
            steps += [f"activate release {change.release.id} of {name}"] if change.activate else []
        return tuple(steps)
