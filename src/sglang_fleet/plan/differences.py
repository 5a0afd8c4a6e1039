"""What the settings change about a service, as lines: from what was put on the host to what is wanted."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from sglang_fleet import unit_reading
from sglang_fleet.difference import readable, unified
from sglang_fleet.drift import UNIT_MODE, dropin_lines, environment_edited, is_ours, odd_mode, put_there
from sglang_fleet.masking import MASK, is_sensitive, mask
from sglang_fleet.observe import ServiceState
from sglang_fleet.release import Release

GATE = (
    "startup_deadline",
    "ready_deadline",
    "interval",
    "soak",
    "drain",
    "probe",
    "address",
    "leader",
    "arguments",
    "counters",
    "golden",
    "throughput",
)
"""The settings of the health gate that are its own; the others are arguments of the server."""

_NAMES_WIDTH = 70
_OFF = frozenset({"address", "leader", "arguments", "counters", "golden", "throughput"})  # what is off when not set
_FROM_ARGUMENTS = frozenset({"arguments"})  # which of them differ stands in the unit's difference


def difference(release: Release, state: ServiceState, secrets: Sequence[str]) -> list[str]:
    """Everything that a new release changes, without what somebody changed on the host: `drift` tells that."""
    ours = is_ours(state)
    ids = [release.id, str(state.installed_release or state.manifest.get("release") or release.id)]
    before = readable(put_there(release, state))
    by_hand = bool(before) and state.installed_service is None and not ours
    lines = _options(before, release, secrets) if by_hand else []
    lines += unified(
        before=before,
        after=release.text("unit"),
        name=f"unit {release.unit_name}",
        secrets=secrets,
        releases=ids,
    )
    if not ours:
        lines += _of_a_stranger(release, state, secrets)
    lines += unified(
        before=_by_name(unit_reading.environment(before)) if by_hand else _environment(release, state),
        after=_by_name(_variables(release)) if by_hand else release.text("environment"),
        name="environment",
        secrets=secrets,
        releases=ids,
    )
    lines += _venv(release, state)
    lines += _secrets(release, state)
    lines += difference_of_manifests(release, state)
    return lines


def new_service(release: Release, state: ServiceState, secrets: Sequence[str]) -> list[str]:
    """What tells most of a service where there was none: the server's options, and what has a value besides.

    Nothing where a unit is there already. The whole of it is `difference`.
    """
    if put_there(release, state):
        return []
    options = [_shown_option(*option, secrets) for option in unit_reading.options(release.text("unit"))]
    names = textwrap.wrap(", ".join(sorted(_variables(release))), _NAMES_WIDTH, break_long_words=False)
    return [
        f"--- unit {release.unit_name} (new), the options of the server",
        *(f"+ {option}" for option in options),
        *(["--- environment (new), the names", *(f"+ {line}" for line in names)] if names else []),
        *_venv(release, state),
        *_secrets(release, state),
    ]


def difference_of_manifests(release: Release, state: ServiceState) -> list[str]:
    """What changes and restarts nothing: the health gate, and who else is in the replica.

    Nothing where the installed release's is not known.
    """
    before = state.manifest.get("gate")
    if not isinstance(before, Mapping):
        return []
    gate: list[str] = []
    for key in GATE:
        gate += _changed(_settings(key, before), _settings(key, release.gate))
    replica = _changed(_replica(state.manifest.get("replica")), _replica(release.replica))
    return [*(["--- health gate", *gate] if gate else []), *(["--- replica", *replica] if replica else [])]


def _changed(before: Sequence[str], after: Sequence[str]) -> list[str]:
    return [
        *(f"-{line}" for line in before if line not in after),
        *(f"+{line}" for line in after if line not in before),
    ]


def _replica(replica: object) -> list[str]:
    """A host's place in its replica as lines; its id follows from the release."""
    if not isinstance(replica, Mapping):
        return []
    return [f"rank: {replica.get('rank')}", f"hosts: {', '.join(map(str, replica.get('hosts', ())))}"]


def _settings(key: str, gate: Mapping[str, object]) -> list[str]:
    """One setting of a gate as lines; none where the gate says nothing of it, so that what is off makes no line."""
    value = gate.get(key)
    if key in _OFF and not value:
        return []
    if key in _FROM_ARGUMENTS:
        return [f"{key}: compared"]
    return [] if value is None else list(_flat(key, value))


def _flat(name: str, value: object) -> Iterator[str]:
    """A value as lines, masked. A number of the gate is no secret, though its key be `tokens`: that counts them."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(f"{name}.{key}", item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(name, item)
    elif isinstance(value, (bool, int, float)):
        yield f"{name}: {str(value).lower() if isinstance(value, bool) else value}"
    else:
        yield mask(f"{name}: {value}")


def _of_a_stranger(release: Release, state: ServiceState, secrets: Sequence[str]) -> list[str]:
    """What else goes away with a unit that is not this service's."""
    lines = []
    if odd_mode(state):
        lines += [f"--- mode of unit {release.unit_name}", f"-{odd_mode(state)}", f"+{UNIT_MODE}"]
    for _, shown in dropin_lines(state, secrets, come=False):
        lines += shown
    return lines


def _environment(release: Release, state: ServiceState) -> str:
    """The environment that was put there; of the wanted release it is known, whatever somebody made of it."""
    if state.installed_release == release.id and environment_edited(state):
        return release.text("environment")
    return readable(state.environment or b"")


def _options(before: str, release: Release, secrets: Sequence[str]) -> list[str]:
    """Which options come and go, whatever the layout of the unit that somebody wrote."""
    old = [_shown_option(*option, secrets) for option in unit_reading.options(before)]
    new = [_shown_option(*option, secrets) for option in unit_reading.options(release.text("unit"))]
    lines = [f"- {option}" for option in old if option not in new]
    lines += [f"+ {option}" for option in new if option not in old]
    return ["--- options of the server", *lines] if lines else []


def _shown_option(flag: str, words: Sequence[str], secrets: Sequence[str]) -> str:
    """An option as a line; masked word by word, since nothing tells afterwards where a word ended."""
    if is_sensitive(flag):
        return f"{flag} {MASK}" if words else flag
    return " ".join([flag, *(mask(word, secrets) for word in words)])


def _variables(release: Release) -> dict[str, str]:
    return unit_reading.environment_file(release.text("environment"))


def _by_name(variables: Mapping[str, str]) -> str:
    shown = {name: MASK if is_sensitive(name) else value for name, value in variables.items()}
    return "".join(f"{name}={value}\n" for name, value in sorted(shown.items()))


def _venv(release: Release, state: ServiceState) -> list[str]:
    before = state.manifest.get("venv_id")
    if before == release.places.venv_id:
        return []
    return [
        f"--- venv{'' if before else ' (new)'}",
        *([f"-{before}"] if before else []),
        f"+{release.places.venv_id}",
    ]


def _secrets(release: Release, state: ServiceState) -> list[str]:
    before = dict(state.manifest.get("secrets") or {})
    after = dict(release.fingerprints)
    lines = [f"-{name}: {MASK}" for name in sorted(before) if name not in after]
    for name, print_ in sorted(after.items()):
        if name not in before:
            lines.append(f"+{name}: {MASK}")
        elif before[name] != print_:
            lines += [f"-{name}: {MASK}", f"+{name}: {MASK} (new value)"]
    return ["--- secrets", *lines] if lines else []
