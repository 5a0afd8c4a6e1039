"""What lies in `group_vars` and `host_vars`, and what of it nobody reads: a misspelt name is no error to Ansible."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

ENDINGS = (".yml", ".yaml")
# One wrong, missing or swapped letter in a name of four; `lab` and `berlin` stay strangers. In a shorter name only
# swapped ones are told from another name: `k62` is meant as `k26`, and `k27` may be another inventory's.
_ALIKE = 0.75


def listing(folder: Path) -> dict[str, list[Path]]:
    """The files and folders of `group_vars` or `host_vars` by the name they speak for."""
    found: dict[str, list[Path]] = {}
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            name = path.name.removesuffix(path.suffix) if path.suffix in ENDINGS else path.name
            if not name.startswith("."):
                found.setdefault(name, []).append(path)
    return found


def strays(
    folders: Mapping[str, Mapping[str, list[Path]]],
    *,
    hosts: Collection[str] | None,
    groups: Collection[str] | None,
) -> tuple[Path, ...]:
    """The YAML files and the folders that belong to no host and no group.

    Several inventories share one `group_vars`, so that a group which this inventory does not have may be
    another's: only a name much like a known one is a stray there.

    Args:
        folders: the listings of `group_vars` and `host_vars`.
        hosts: every host of the inventory; None: not known, and no host is a stray.
        groups: every group of the inventory, likewise; `all` is always one.
    """
    found: list[Path] = []
    if groups is not None:
        known = {"all", *groups}
        alike = [name.lower() for name in (*known, *(hosts or ()))]
        for name, paths in folders["group_vars"].items():
            if name not in known and _is_like(name.lower(), alike):
                found += _settings(paths)
    if hosts is not None:
        for name, paths in folders["host_vars"].items():
            if name not in hosts:
                found += _settings(paths)
    return tuple(found)


def _is_like(name: str, known: Collection[str]) -> bool:
    if any(sorted(name) == sorted(other) for other in known):
        return True
    return bool(difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE))


def _settings(paths: list[Path]) -> list[Path]:
    """Those that are meant as settings; a README or an editor's backup is not."""
    return [path for path in paths if path.suffix in ENDINGS or path.is_dir()]
