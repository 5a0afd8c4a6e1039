"""Which files and overrides make a host's settings, and their merge.

As in Ansible, from weak to strong: `group_vars/all`, each group of the host in alphabetical order,
`host_vars/NAME`, what stands beside the host in the inventory, and then pyinfra's `--data`. Each name may be a file
(`NAME.yml`, `NAME.yaml`, `NAME`) or a folder of such files, read in alphabetical order. Unlike in Ansible, two of
these for one name are an error: one of them would be ignored without a word.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_fleet.problems import Problem
from sglang_fleet.variables.reading import Reading, read_bytes, read_file
from sglang_fleet.variables.strays import ENDINGS, listing, strays
from sglang_fleet.variables.tree import Node, Place, merge

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

OURS = ("cuda", "sglang", "services", "network", "rollout")
# The one setting that may stand beside a host in the inventory: everything else there is pyinfra's.
BESIDE_A_HOST = "network"
# pyinfra's connectors and its global arguments (`_sudo`) read these from the same `--data`.
PYINFRAS = ("_", "ssh_", "docker_", "podman_", "chroot_", "vagrant_", "terraform_", "local_", "scp_")
_NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Variables:
    """The settings of every host.

    Attributes:
        trees: the merged settings by host. Hosts of equal files share one tree; with an unreadable
            file a host has none.
        problems: what is wrong with the files and overrides themselves.
        strays: files and folders that belong to no host and no group.
        files: the files of each host, from weak to strong, also where one of them cannot be read.
    """

    trees: dict[str, Node] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    strays: tuple[Path, ...] = ()
    files: dict[str, tuple[Path, ...]] = field(default_factory=dict)


def gather(
    *,
    folder: Path,
    hosts: Mapping[str, Sequence[str]],
    overrides: Mapping[str, object],
    also_known: Sequence[str] = (),
    known_hosts: Collection[str] | None = None,
    known_groups: Collection[str] | None = None,
    inventory_data: Mapping[str, Mapping[str, object]] | None = None,
) -> Variables:
    """Read and merge the settings of all hosts.

    Args:
        folder: the project folder, which holds `group_vars/` and `host_vars/`.
        hosts: the groups of each host.
        overrides: pyinfra's `--data`, parsed; keys may be dotted. Those of pyinfra itself are left alone.
        also_known: names of overrides that somebody else reads.
        known_hosts: every host of the inventory, also those that this run leaves out; None: not known, so that
            no file in `host_vars` is called a stray.
        known_groups: every group, likewise.
        inventory_data: what stands beside each host in the inventory; only `network` is read.
    """
    above, problems = _overrides(overrides, also_known=also_known)
    try:
        folders = {kind: listing(folder / kind) for kind in ("group_vars", "host_vars")}
    except OSError as error:
        name = Path(error.filename or folder)
        problems.append(Problem(name, None, "", f"cannot be read: {error.strerror}", "check its permissions"))
        return Variables({}, [replace(problem, hosts=tuple(hosts)) for problem in problems])
    found = Variables(
        {},
        [replace(problem, hosts=tuple(hosts)) for problem in problems],
        strays(folders, hosts=known_hosts, groups=known_groups),
    )

    @cache
    def layers(kind: str, name: str) -> list[tuple[Path, Reading]]:
        return _layers(folders[kind].get(name, []))

    merged: dict[tuple[Path, ...], Node] = {}
    for host, groups in hosts.items():
        stack = [layer for kind, name in _names(host, groups) for layer in layers(kind, name)]
        found.problems.extend(replace(problem, hosts=(host,)) for _, reading in stack for problem in reading.problems)
        files = found.files[host] = tuple(file for file, _ in stack)
        trees = [reading.tree for _, reading in stack if reading.tree is not None]
        if len(trees) == len(stack):
            root = Place(files[0]) if files else _NOWHERE  # where to write what is missing
            beside = _beside(host, (inventory_data or {}).get(host, {}))
            if beside is not None:
                found.trees[host] = reduce(merge, [*trees, beside, above], Node({}, root, root))
                continue
            if files not in merged:
                merged[files] = reduce(merge, [*trees, above], Node({}, root, root))
            found.trees[host] = merged[files]
    return found


def _beside(host: str, data: Mapping[str, object]) -> Node | None:
    """What the inventory itself says of a host, as a tree; None where it says nothing that is ours."""
    if BESIDE_A_HOST not in data:
        return None
    place = Place(source=f"the inventory, beside {host}")
    return Node({BESIDE_A_HOST: _node(data[BESIDE_A_HOST], place)}, place, place)


def _names(host: str, groups: Sequence[str]) -> list[tuple[str, str]]:
    """Where a host's settings may be, from weak to strong."""
    others = sorted(set(groups) - {"all"})
    return [("group_vars", "all"), *(("group_vars", name) for name in others), ("host_vars", host)]


def _layers(paths: list[Path]) -> list[tuple[Path, Reading]]:
    """What the files for one name hold, from weak to strong."""
    if len(paths) > 1:
        others = " and ".join(path.name + "/" * path.is_dir() for path in paths[1:])
        message = f"stands beside {others}, for the same name"
        clash = Problem(paths[0], None, "", message, "keep one of them, or move all into the folder")
        return [(paths[0], Reading(None, (clash,)))]
    if paths and paths[0].is_dir():
        inside = paths[0].rglob("*")
        paths = sorted(path for path in inside if path.suffix in ENDINGS and path.name[0] != ".")
    return [(path, _settings(path)) for path in paths]


def _settings(file: Path) -> Reading:
    """What a file of settings holds: a mapping, or nothing."""
    reading = read_file(file)
    if reading.tree is None or isinstance(reading.tree.value, dict):
        return reading
    if reading.tree.value is None:
        return Reading(replace(reading.tree, value={}), reading.problems)
    fix = "write settings as 'key: value'"
    return Reading(None, (Problem(file, reading.tree.place.line, "", "is no mapping of settings", fix),))


def _overrides(overrides: Mapping[str, object], *, also_known: Sequence[str]) -> tuple[Node, list[Problem]]:
    """The overrides as a tree; shorter keys first, so that `services.k26.port` wins over `services`."""
    tree = Node({}, _NOWHERE, _NOWHERE)
    problems: list[Problem] = []
    for key in sorted(overrides, key=lambda name: name.count(".")):
        top, *rest = key.split(".")
        source = f"--data {key}"
        if top in OURS and all(rest):
            place = Place(source=source)
            node = _node(overrides[key], place)
            for name in reversed([top, *rest]):
                node = Node({name: node}, place, place)
            tree = merge(tree, node)
        elif key not in also_known and top not in also_known and not key.startswith(PYINFRAS):
            problems.append(Problem(None, None, key, "no such setting", _did_you_mean(top, also_known), source=source))
    return tree, problems


def _did_you_mean(name: str, also_known: Sequence[str]) -> str:
    known = (*OURS, *also_known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"the settings are {', '.join(known)}"


def _node(value: object, place: Place) -> Node:
    """An override's value as a tree. `[1, 50%]` is no JSON, so pyinfra leaves it as text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        tree = read_bytes(value.encode(errors="replace"), file=None, source=place.source).tree
        if tree is not None:
            return _at(tree, place)
    if isinstance(value, dict):
        return Node({str(name): _node(child, place) for name, child in value.items()}, place, place)
    if isinstance(value, (list, tuple)):
        return Node(tuple(_node(child, place) for child in value), place, place)
    if value is None or isinstance(value, (str, int, float, bool)):
        return Node(value, place, place)
    return Node(str(value), place, place)


def _at(node: Node, place: Place) -> Node:
    """The same tree without line numbers: those of an override mean nothing."""
    value = node.value
    if isinstance(value, dict):
        value = {name: _at(child, place) for name, child in value.items()}
    elif isinstance(value, tuple):
        value = tuple(_at(child, place) for child in value)
    return Node(value, place, place, node.text)
