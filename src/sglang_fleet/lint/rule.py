"""What a rule is: a function with an id and a severity, documented by its own docstring."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import HostView, ServiceView, UnitView

Severity = Literal["error", "warning", "note"]
"""error: cannot work. warning: works, but badly or dangerously. note: worth knowing, and may well be intended."""

Needs = Literal["settings", "model", "host", "unit"]
"""What a rule has to see: the settings; the model's config.json too; a host too; or a unit, and nothing else."""

Subject = Literal["service", "host", "unit"]

_ID = re.compile(r"SGL[0-9]{3}")
_SECTION = re.compile(r"^(Why|Evidence|Fix):[ \t]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Documentation:
    """A rule's docstring, taken apart."""

    title: str
    why: str
    evidence: str
    fix: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        id: `SGL` and three digits, the first of which is the subject.
        severity: of all its findings.
        needs: what it has to see.
        subject: what it is called with: a service's view, a host's, or a unit's.
        check: the function.
    """

    id: str
    severity: Severity
    needs: Needs
    subject: Subject
    check: Callable[[Any], Iterable[Found]]

    @property
    def documentation(self) -> Documentation:
        """What `explain` says. Raises ValueError for a docstring without one of the sections."""
        return read_documentation(self.id, self.check)


def read_documentation(name: str, check: Callable[..., object]) -> Documentation:
    """What the docstring of a rule's function says. Raises ValueError where one of the sections is missing."""
    title, *rest = inspect.cleandoc(check.__doc__ or "").split("\n", 1)
    parts = _SECTION.split("".join(rest))
    sections = {heading: text.strip() for heading, text in zip(parts[1::2], parts[2::2], strict=True)}
    if not title or set(sections) != {"Why", "Evidence", "Fix"} or not all(sections.values()):
        raise ValueError(f"{name}: its docstring needs a title and the sections Why, Evidence and Fix")
    return Documentation(title.rstrip("."), sections["Why"], sections["Evidence"], sections["Fix"])


def service_rule(
    name: str, severity: Severity, *, needs: Literal["settings", "model", "host"] = "settings"
) -> Callable[[Callable[[ServiceView], Iterable[Found]]], Rule]:
    """Make a rule of a function that judges one service."""
    return lambda check: _rule(name, severity, needs, "service", check)


def host_rule(
    name: str, severity: Severity, *, needs: Literal["settings", "host"] = "host"
) -> Callable[[Callable[[HostView], Iterable[Found]]], Rule]:
    """Make a rule of a function that judges one host."""
    return lambda check: _rule(name, severity, needs, "host", check)


def unit_rule(name: str, severity: Severity) -> Callable[[Callable[[UnitView], Iterable[Found]]], Rule]:
    """Make a rule of a function that judges a systemd unit."""
    return lambda check: _rule(name, severity, "unit", "unit", check)


def _rule(
    name: str, severity: Severity, needs: Needs, subject: Subject, check: Callable[[Any], Iterable[Found]]
) -> Rule:
    if not _ID.fullmatch(name):
        raise ValueError(f"a rule's id is SGL and three digits, got {name!r}")
    return Rule(name, severity, needs, subject, check)
