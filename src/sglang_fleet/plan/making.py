"""What has to happen on one host: a pure function of what is wanted and what the probe saw."""

from collections.abc import Sequence

from sglang_fleet.drift import (
    drift,
    environment_edited,
    is_masked,
    odd_folder,
    odd_mode,
    odd_owner,
    other_files_edited,
    staged_copy_edited,
)
from sglang_fleet.observe import HostState, ServiceState, UnitFile, Unknown
from sglang_fleet.plan.changes import HostPlan, ServiceChange
from sglang_fleet.plan.differences import difference, difference_of_manifests, new_service
from sglang_fleet.release import Release
from sglang_fleet.standing import standing
from sglang_fleet.turns import in_turn


def make_plan(*, host: str, releases: Sequence[Release], state: HostState, secrets: Sequence[str] = ()) -> HostPlan:
    """Plan one host.

    Args:
        host: its name.
        releases: what the spec wants, one release a service.
        state: what the probe saw; `preflight.check` has found nothing UNKNOWN that matters here.
        secrets: values to hide in the differences.
    """
    wanted_venvs = sorted({release.places.venv_id for release in releases})
    users = sorted({release.user for release in releases})
    venvs = None if isinstance(state.venvs, Unknown) else state.venvs
    return HostPlan(
        host=host,
        accounts=tuple(user for user in users if state.users.get(user) is None),
        cuda="" if state.toolkit_verified is True else _why_cuda(state),
        architectures=_architectures(state),
        venvs=tuple(venv for venv in wanted_venvs if venv not in state.known_venvs()),
        services={
            release.service: _service_change(release, state.services[release.service], secrets, venvs=venvs)
            for release in in_turn(releases, state)
        },
    )


def serving(state: HostState, service: str) -> bool:
    """Whether a server runs as the service now, whoever started it; what could not be read does not count as one."""
    found = state.services.get(service)
    return found is not None and found.active == "active" and found.is_running is True


def _architectures(state: HostState) -> tuple[str, ...]:
    gpus = () if isinstance(state.gpus, Unknown) else state.gpus
    return tuple(sorted({gpu.compute_cap.replace(".", "") for gpu in gpus if isinstance(gpu.compute_cap, str)}))


def _why_cuda(state: HostState) -> str:
    return "verify the toolkit" if state.toolkit.version else "install the toolkit"


def _service_change(
    release: Release, state: ServiceState, secrets: Sequence[str], *, venvs: Sequence[str] | None
) -> ServiceChange:
    why = why_activate(release, state)
    by_hand = drift(release, state, secrets, venvs=venvs)
    manifests = difference_of_manifests(release, state)
    return ServiceChange(
        release=release,
        stage=bool(manifests) or not _is_staged(release, state),
        activate=bool(why),
        why=why + standing(state, told=by_hand) + _going_on(state) if why else "",
        before=state.describe_installed(),
        difference=tuple(difference(release, state, secrets) if why else manifests),
        summary=tuple(new_service(release, state, secrets)) if why else (),
        drift=by_hand,
        # The server may have read what is put right; that what runs is the release does not tell.
        restart=bool(why) and (environment_edited(state) or _read_at_start(state)),
        started_anew=state.started_anew,
        since=state.active_since if isinstance(state.active_since, str) else "",
    )


def _going_on(state: ServiceState) -> str:
    """Say that an earlier activation has not ended: it goes on, and will have this one refused, or it was killed."""
    last = state.unfinished
    if last is None:
        return ""
    by = f" by {last.by}" if last.by else ""
    return f"; activation {last.id}{by} has not ended there yet"


def _is_staged(release: Release, state: ServiceState) -> bool:
    """Whether the release's files are known to be on the host as they were written.

    What only its manifest says, such as the gate, is no part of a release's id, since no server has to restart for it.
    Of a release that is not installed it is not seen: it is staged once more, before it is activated, which changes
    nothing when all is right.
    """
    installed = state.installed_release == release.id and release.id in state.known_releases()
    edited = environment_edited(state) or staged_copy_edited(state) or state.edited_files or state.exposed_files
    return installed and not edited


def _read_at_start(state: ServiceState) -> bool:
    """Whether a file that the server reads when it starts was edited."""
    return bool(other_files_edited(state))


def why_activate(release: Release, state: ServiceState) -> str:
    """Why a service is not converged; empty when its running, proven release is the one wanted."""
    wanted = release.text("unit").encode()
    checks = (
        (state.installed_bytes() is None, "not installed yet"),
        (state.installed_service not in (None, release.service), "another service's unit is installed"),
        (is_masked(state), "the unit is masked"),
        (state.installed_release is None, "a unit written by hand is installed"),
        (state.installed_release != release.id, "another release is installed"),
        (state.installed_bytes() != wanted, "the installed unit was edited by hand"),
        (isinstance(state.unit, UnitFile) and state.unit.kind != "file", "the installed unit is a link, not a file"),
        (bool(odd_folder(state)), f"the installed unit lies in {odd_folder(state)}"),
        (bool(state.dropins), "drop-ins change the unit"),
        (environment_edited(state), "the release's environment was edited by hand"),
        (_read_at_start(state), f"{', '.join(other_files_edited(state))} of the release was edited by hand"),
        (state.active != "active", f"the unit is {state.active}"),
        (state.running_release != release.id, "the process still runs another release"),
        (state.needs_reload is True, "systemd has not read the unit's files again since they changed"),
        (state.enabled != "enabled", "the unit is not enabled at boot"),
        (state.proven_release != release.id, "the running release has not been proven since it was started"),
        (bool(odd_mode(state)), "the installed unit has another mode; putting that right restarts nothing"),
        (bool(odd_owner(state)), "the installed unit is not root's; putting that right restarts nothing"),
    )
    return next((why for holds, why in checks if holds), "")
