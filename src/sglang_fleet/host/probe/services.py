"""Services: what is installed, what runs, what was proven, and what the settings no longer name."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from .basis import Unreadable, is_there, leaf, names, read, read_object
from .units import UNITS, count, dropins, installed, moment, shared_dropins, shown, unit_file, unit_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .basis import Json

PRIVATE_FILES = frozenset({"environment", "environment.secret", "secrets.yaml"})  # as sglang_fleet/render.py has them
UNTOUCHED = ("refused", "rejected", "nothing")  # outcomes of activations that changed nothing
ASIDE = "/run/sglang-fleet/results"  # as activation/results.py has it
COMPARED_FILES = frozenset({"environment", "unit"})  # whose texts are sent, where they differ


def running_release(root: str, main_pid: Json) -> str | None:
    """The release the main process was started with: the only thing taken from its environment."""
    if isinstance(main_pid, dict):
        raise Unreadable(main_pid["unknown"])
    if not main_pid:
        return None
    start = b"SGLANG_FLEET_RELEASE="
    for entry in read(f"{root}/proc/{main_pid}/environ").split(b"\0"):
        if entry.startswith(start):
            return entry[len(start) :].decode("ascii", "replace") or None
    return None


def releases(folder: str) -> list[str]:
    """The complete ones: their manifest is written last."""
    return [name for name in names(f"{folder}/releases") if is_there(f"{folder}/releases/{name}/release.json")]


def proven(folder: str) -> list[dict[str, str]]:
    """Every release that was seen to be healthy, the newest last."""
    path = f"{folder}/proven.json"
    try:
        entries = read_object(path).get("releases")
    except FileNotFoundError:
        return []
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("release"), str) for entry in entries
    ):
        raise Unreadable(f"{path}: not a list of proven releases")
    keys = "release", "proven_at", "activation", "invocation"
    return [{key: str(entry.get(key, "")) for key in keys} for entry in entries]


def last_activation(folder: str, aside: str) -> dict[str, Any] | None:
    """The newest activation; one that touched nothing says nothing of the service, unless there is no other."""
    newest_first = by_age(f"{folder}/activations")[::-1]
    if not newest_first:
        return None
    last = next((one for one in newest_first if leaf(outcome, one, aside) not in UNTOUCHED), newest_first[0])
    return {"id": os.path.basename(last), "outcome": leaf(outcome, last, aside), "by": asked_by(last)}


def by_age(folder: str) -> list[str]:
    """The activations, oldest first, whatever the clocks of controllers say, by which they are named.

    Those that began have a place. One that did not comes after them if it was asked for after the last of them.
    """
    found = [(place(path), asked_at(path), path) for path in (f"{folder}/{name}" for name in names(folder))]
    last, since = max(((at_place, asked) for at_place, asked, _ in found), default=(0, 0))

    def age(one: tuple[int, int, str]) -> tuple[int, int, str]:
        at_place, asked, path = one
        return at_place or (last + 1 if asked > since else 0), asked, path

    return [path for _, _, path in sorted(found, key=age)]


def place(folder: str) -> int:
    """Where an activation stands among those that began; 0 for one that did not, or does not say."""
    found = leaf(read_object, f"{folder}/began.json").get("place")
    return found if isinstance(found, int) else 0


def asked_at(folder: str) -> int:
    """When an activation was asked for, by this host's clock, in nanoseconds; 0 where that cannot be known."""
    found = leaf(os.lstat, f"{folder}/request.json")
    return found.st_mtime_ns if isinstance(found, os.stat_result) else 0


def outcome(folder: str, aside: str) -> str | None:
    """How an activation ended; None if it has not, or was killed. On a full disk its result went to `aside`."""
    for path in (f"{folder}/result.json", f"{aside}/{os.path.basename(folder)}.json"):
        try:
            return str(read_object(path)["outcome"])
        except FileNotFoundError:
            continue
        except KeyError:
            raise Unreadable(f"{path}: no outcome") from None
    return None


def asked_by(folder: str) -> str:
    """Who asked for an activation; empty where that cannot be read, which is no reason to refuse anything."""
    try:
        return str(read_object(f"{folder}/request.json").get("by") or "")
    except (OSError, Unreadable):
        return ""


def of_release(services: str, owner: str, release: str, look: Callable[[str], Json], name: str) -> Json:
    """A file of the installed release; None without one, or if its folder has gone."""
    try:
        return look(f"{services}/{owner}/releases/{release}/{name}") if release else None
    except FileNotFoundError:
        return None


def of_installed(services: str, service: str, file: dict[str, Any], found_proven: Json) -> dict[str, Any]:
    """What the installed unit says about itself, and its release's files; another service may have left it here.

    Where no unit of ours is installed, the files are those of the release that was proven last, if any was: somebody
    has removed its unit, or put another in place of it.
    """
    found = leaf(installed, file)
    if isinstance(found, dict):
        keys = "installed_service", "installed_release", "release_manifest", "environment_b64", "staged_unit_b64"
        return dict.fromkeys((*keys, "altered_files"), found)
    owner, release = found
    of_owner, expected = owner, release
    if not owner and isinstance(found_proven, list) and found_proven:
        of_owner, expected = service, found_proven[-1]["release"]
    manifest = leaf(of_release, services, of_owner, expected, read_object, "release.json")
    return {
        "installed_service": owner or None,
        "installed_release": release if owner == service else None,
        "release_manifest": manifest,
        "environment_b64": leaf(of_release, services, of_owner, expected, read, "environment"),
        "staged_unit_b64": leaf(staged_unit, services, of_owner, expected, file),
        "altered_files": leaf(altered_files, f"{services}/{of_owner}/releases/{expected}", manifest),
    }


def altered_files(folder: str, manifest: Json) -> dict[str, list[str]]:
    """The names of a release's files that somebody has changed, and of those that others than root may use.

    Compared here, because they may hold secrets: nothing of them is sent.
    """
    staged = manifest.get("files") if isinstance(manifest, dict) else None
    edited, exposed = [], []
    for name, expected in staged.items() if isinstance(staged, dict) else ():
        path = f"{folder}/{name.rpartition('/')[2]}"
        try:
            details = os.lstat(path)
        except FileNotFoundError:
            edited.append(name)
            continue
        if not stat.S_ISREG(details.st_mode) or (name not in COMPARED_FILES and digest(read(path)) != expected):
            edited.append(name)
        elif details.st_mode & (0o077 if name in PRIVATE_FILES else 0o022):
            exposed.append(name)
    return {"edited": edited, "exposed": exposed}


def digest(content: bytes) -> str:
    """The sha256 of a file's content, as manifests have it."""
    try:
        # Private, so it may be missing; hashlib loads all of OpenSSL.
        from _sha256 import sha256  # type: ignore[import-not-found]  # noqa: PLC0415
    except ImportError:
        from hashlib import sha256  # noqa: PLC0415 - as above
    return str(sha256(content).hexdigest())


def staged_unit(services: str, owner: str, release: str, file: dict[str, Any]) -> Json:
    """The unit as it was staged, if it is not the one that is installed: most often it is, and nothing is sent."""
    staged = of_release(services, owner, release, read, "unit")
    return None if staged == file.get("text_b64") else staged


def service(root: str, services: str, name: str, unit: str, blocks: dict[str, Any]) -> dict[str, Any]:
    """Everything about one service: what is installed, what runs, what was proven."""
    folder = f"{services}/{name}"
    path = leaf(unit_path, root, blocks, unit)
    file = path if isinstance(path, dict) else leaf(unit_file, root, path)
    main_pid = leaf(count, blocks, unit, "MainPID")
    found_proven = leaf(proven, folder)
    return {
        "unit": file,
        "fragment": path,
        "dropins": leaf(dropins, root, unit),
        "shared_dropins": leaf(shared_dropins, blocks, unit),
        "load": leaf(shown, blocks, unit, "LoadState"),
        "active": leaf(shown, blocks, unit, "ActiveState"),
        "sub": leaf(shown, blocks, unit, "SubState"),
        "result": leaf(shown, blocks, unit, "Result"),
        "enabled": leaf(shown, blocks, unit, "UnitFileState"),
        "needs_reload": leaf(lambda: shown(blocks, unit, "NeedDaemonReload") == "yes"),
        "main_pid": main_pid,
        "restarts": leaf(count, blocks, unit, "NRestarts"),
        "invocation": leaf(shown, blocks, unit, "InvocationID"),
        "active_since": leaf(moment, blocks, unit),
        "running_release": leaf(running_release, root, main_pid),
        "releases": leaf(releases, folder),
        "proven": found_proven,
        "last_activation": leaf(last_activation, folder, f"{root}{ASIDE}/{name}"),
        **of_installed(services, name, file, found_proven),
    }


# -- Services that were deployed earlier and that nobody asks about any more -----------------------------------------


def leftovers(root: str, services: str, asked: Iterable[str]) -> dict[str, str]:
    """Service → unit of those whose unit is still in place, and starts with the host or runs."""
    found = {}
    for name in names(services):
        unit = "" if name in asked else last_unit(f"{services}/{name}")
        if unit and installed(unit_file(root, f"{UNITS}/{unit}"))[0] == name and is_live(root, unit):
            found[name] = unit
    return found


def last_unit(folder: str) -> str:
    """The unit of the release that was proven last, else of the newest one; "" for a service without any."""
    known = releases(folder)
    last = [entry["release"] for entry in proven(folder) if entry["release"] in known][-1:]
    last = last or sorted(known, key=lambda name: os.stat(f"{folder}/releases/{name}/release.json").st_mtime)[-1:]
    path = f"{folder}/releases/{last[0]}/release.json" if last else ""
    unit = read_object(path).get("unit_name") if path else ""
    if not isinstance(unit, str) or "/" in unit:
        raise Unreadable(f"{path}: names no unit")
    return unit


def is_live(root: str, unit: str) -> bool:
    """Whether a unit of ours starts with the host, or has processes now; without asking systemd, which costs."""
    groups = ("system.slice", "systemd/system.slice")  # of cgroup v2 and v1
    return unit in names(f"{root}{UNITS}/multi-user.target.wants") or any(
        is_there(f"{root}/sys/fs/cgroup/{group}/{unit}") for group in groups
    )
