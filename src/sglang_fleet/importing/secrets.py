"""Secrets that stood in the source: named in the settings, never written there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from sglang_fleet.importing.basis import UNKNOWN, Notes, plain
from sglang_fleet.masking import is_sensitive
from sglang_fleet.spec.secrets import is_argument

_LOGIN = re.compile(r"\w://[^\s/@:]*:[^\s@]+@|\w://[^\s/@:]{8,}@")
_REFERENCE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)[^}]*\}?")
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")


def holds_secret(value: str) -> bool:
    """Whether a value holds a secret inside: a login in an address, or a telling key of a JSON text."""
    if _LOGIN.search(value):
        return True
    if value.lstrip()[:1] not in ("{", "["):
        return False
    try:
        return _tells(json.loads(value))
    except ValueError:
        return False


def holds_login(value: str) -> bool:
    """Whether a value is an address with a login in it, and nothing else that is secret."""
    return _LOGIN.search(value) is not None and value.lstrip()[:1] not in ("{", "[")


def _tells(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(
            (isinstance(inner, str) and bool(inner) and is_sensitive(str(name))) or _tells(inner)
            for name, inner in value.items()
        )
    return any(map(_tells, value)) if isinstance(value, Sequence) and not isinstance(value, str) else False


class Secrets:
    """The secrets of one service, and every secret value that was seen, to hide it.

    Attributes:
        sources: for each secret, where the controller finds it.
        values: the values.
    """

    def __init__(self, *, service: str, notes: Notes, exposed: Sequence[str] = ()) -> None:
        self.sources: dict[str, dict[str, str]] = {}
        self.values: set[str] = set()
        self._service, self._notes = service, notes
        self._exposed = list(exposed)

    def add(self, name: str, value: str, *, line: int, flag: str = "") -> None:
        """A secret by the name that the settings give it; its value goes nowhere."""
        self.drop(value)
        shown = flag or name
        if not value:
            self._notes.add(line, f"{shown} is empty: left out")
            return
        if not is_argument(name) and not _NAME.fullmatch(name):
            self._notes.add(line, f"{name} looks like a secret, and only names in upper case can be one: left out")
            return
        variable = self._variable(name, value)
        self.sources[name] = {"env": variable}
        where = f"its value is not written here; export {variable} on the controller"
        told = next((each for each in self._exposed if f" {shown} " in each), None)
        if told is None:
            self._notes.add(line, f"{shown} is a secret: {where}")
        else:
            self._exposed.remove(told)
            self._notes.add(line, f"{told}: {where}, best a new one")

    def close(self, line: int) -> None:
        """Say what a unit's rule found and no secret's note has said."""
        for told in self._exposed:
            self._notes.add(line, told)

    def drop(self, value: str) -> None:
        """Remember a value that must not be shown."""
        if UNKNOWN not in value:
            self.values.add(value)

    def _variable(self, name: str, value: str) -> str:
        reference = _REFERENCE.fullmatch(plain(value)) if UNKNOWN in value else None
        if reference:
            return reference[1]
        own = re.sub(r"[^A-Z0-9]+", "_", f"{self._service}_{name}".upper()) if is_argument(name) else name
        return own if re.fullmatch(r"[A-Z_][A-Z0-9_]*", own) else f"SGLANG_{own}"
