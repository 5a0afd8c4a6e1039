"""What a saved plan hangs on of a host, one aspect by another, so that a change can be named.

In are the facts that an action, or what is shown of it, hangs on. Left out are those that move by themselves (memory
in use, free bytes, process numbers, times, restarts) and those that the rules ask again before anything is changed.

No value helps to guess a secret. Texts that are byte for byte what was staged hold none and count by a fast hash; what
somebody else wrote may hold one, a key in an argument say, and counts by the slow hash that secrets themselves have.
Both are salted by a value of the plan's own, so that two plans tell nothing together.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from sglang_fleet.answer import Unknown
from sglang_fleet.drift import UNIT_FOLDER, odd_folder, odd_owner
from sglang_fleet.observed import UnitFile, User

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sglang_fleet.observed import Gpu, HostState, Model, ServiceState
    from sglang_fleet.release import Release

UNREAD = "not readable"
NONE = "none"
_LENGTH = 16
_STARTED = frozenset({"active", "activating", "reloading"})  # between two starts of a crash loop it is all of them
_SHOWN_OF_MANIFEST = ("release", "unit_name", "venv_id", "gate", "secrets", "replica")


def fingerprint(state: HostState, *, releases: Iterable[Release], salt: str) -> dict[str, str]:
    """Aspect → value: a word where that says it, else a digest, which begins with `#`.

    Args:
        state: what the probe saw.
        releases: what the host's services shall run.
        salt: the plan's own.
    """
    wanted = sorted({release.places.venv_id for release in releases})
    return {
        "the machine": _machine(state),
        "the login": "root" if state.euid == 0 else f"user {state.euid}",
        "the accounts": _digest(_users(state), salt),
        "the Python interpreters": _digest({name: _word(path) for name, path in state.pythons.items()}, salt),
        "the GPUs": _digest(_gpus(state.gpus), salt),
        "the driver": _word(state.driver),
        "the CUDA toolkit": f"{_word(state.toolkit.version)} in {state.toolkit.home}",
        "whether the CUDA toolkit was verified": _word(state.toolkit_verified),
        "the venvs": _venvs(state, wanted),
        **{f"the model {path}": _digest(_model(model), salt) for path, model in state.models.items()},
        **dict(part for name, service in state.services.items() for part in _service(name, service, salt)),
    }


def _machine(state: HostState) -> str:
    system = UNREAD if isinstance(state.os, Unknown) else f"{state.os.id} {state.os.version_id}"
    return f"{state.hostname}, {state.arch}, {system}"


def _users(state: HostState) -> dict[str, Any]:
    return {
        name: [user.uid, user.home] if isinstance(user, User) else _word(user) for name, user in state.users.items()
    }


def _gpus(gpus: tuple[Gpu, ...] | Unknown) -> list[Any] | str:
    if isinstance(gpus, Unknown):
        return UNREAD
    return [[gpu.index, gpu.uuid, gpu.name, _word(gpu.compute_cap)] for gpu in gpus]


def _venvs(state: HostState, wanted: Sequence[str]) -> str:
    """Which of the wanted ones are there; others come and go with other deployments."""
    if isinstance(state.venvs, Unknown):
        return UNREAD
    return ", ".join(venv for venv in wanted if venv in state.venvs) or NONE


def _model(model: Model | Unknown) -> list[Any] | str:
    if isinstance(model, Unknown):
        return UNREAD
    return [model.exists, model.directory, model.index, model.missing, model.wrong_size, model.bytes]


def _service(name: str, state: ServiceState, salt: str) -> Iterator[tuple[str, str]]:
    manifest = {} if isinstance(state.release_manifest, Unknown) else state.release_manifest or {}
    staged = manifest.get("files") or {}
    yield f"the unit of {name}", _unit(state, staged, salt)
    yield f"the mode of the unit of {name}", _mode(state)
    yield f"the folder of the unit of {name}", _word(odd_folder(state) or UNIT_FOLDER) if state.unit else NONE
    yield f"the drop-ins of {name}", _dropins(state, salt)
    yield f"the environment of {name}", _text(state.environment_file, staged.get("environment"), salt)
    yield f"the staged unit of {name}", _text(state.staged_unit, staged.get("unit"), salt)
    yield f"the files of the installed release of {name}", _altered(state)
    yield f"the installed release of {name}", _installed(state, manifest, salt)
    yield f"the releases of {name} on the host", _digest(_names(state.releases), salt)
    yield f"the last proof of {name}", _last_proof(state)
    yield f"the activation of {name} that has not ended", _unfinished(state)
    yield f"the start of {name} with the host", _word(state.enabled)
    yield f"systemd's need to read the unit of {name} again", _word(state.needs_reload)
    started = state.active in _STARTED
    yield f"the server of {name}", "started" if started else _word(state.active)
    if state.running_release is not None or not started:  # between two starts nothing runs that could be asked
        yield f"the release that runs as {name}", _word(state.running_release)


def _unit(state: ServiceState, staged: Mapping[str, str], salt: str) -> str:
    if not isinstance(state.unit, UnitFile):
        return _word(state.unit)
    text = _text(state.unit.text, staged.get("unit"), salt)
    return text if state.unit.kind == "file" else f"{state.unit.kind} {text}"


def _mode(state: ServiceState) -> str:
    if not isinstance(state.unit, UnitFile):
        return NONE
    mode, owner = _word(state.unit.mode), odd_owner(state)
    return f"{mode} of user {owner}" if owner else mode


def _altered(state: ServiceState) -> str:
    if isinstance(state.altered_files, Unknown):
        return UNREAD
    files = {"edited": state.edited_files, "exposed": state.exposed_files}
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in files.items() if names) or "as staged"


def _dropins(state: ServiceState, salt: str) -> str:
    if isinstance(state.dropins, Unknown):
        return UNREAD
    return _digest([[dropin.path, _text(dropin.content, None, salt)] for dropin in state.dropins], salt)


def _installed(state: ServiceState, manifest: Mapping[str, Any], salt: str) -> str:
    """What a plan takes from the manifest: not its digests of secret files, which are fast hashes."""
    if isinstance(state.release_manifest, Unknown):
        return UNREAD
    parts = {key: manifest.get(key) for key in _SHOWN_OF_MANIFEST}
    return _digest([_word(state.installed_service), _word(state.installed_release), parts], salt)


def _last_proof(state: ServiceState) -> str:
    if isinstance(state.proven, Unknown):
        return UNREAD
    return f"{state.proven[-1].release} by {state.proven[-1].activation}" if state.proven else NONE


def _unfinished(state: ServiceState) -> str:
    return state.unfinished.id if state.unfinished else NONE


def _names(names: tuple[str, ...] | Unknown) -> list[str] | str:
    return UNREAD if isinstance(names, Unknown) else sorted(names)


def _word(value: object) -> str:
    if isinstance(value, Unknown):
        return UNREAD
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value not in (None, "") else NONE


def _text(text: bytes | Unknown | None, staged: str | None, salt: str) -> str:
    """A text of the host; `staged` is the digest it has when it is what was staged, which holds no secret."""
    if text is None or isinstance(text, Unknown):
        return _word(text)
    digest = hashlib.sha256(text).hexdigest()
    return _digest(digest, salt) if digest == staged else _slowly(text, salt)


@cache
def _slowly(text: bytes, salt: str) -> str:
    return f"#{hashlib.scrypt(text, salt=salt.encode(), n=2**14, r=8, p=1, dklen=32).hex()[:_LENGTH]}"


def _digest(value: object, salt: str) -> str:
    text = f"{salt}\n{json.dumps(value, sort_keys=True)}"
    return f"#{hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]}"
