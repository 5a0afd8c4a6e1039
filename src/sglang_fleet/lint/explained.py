"""What a rule is about, in full: the text of `sglang-fleet explain` and of docs/rules.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_fleet.lint.waivers import NEVER

if TYPE_CHECKING:
    from sglang_fleet.lint.register import AnyRule

_LOOKS_AT = {
    ("settings", "settings"): "the settings of all hosts",
    ("service", "settings"): "the settings of a service",
    ("service", "model"): "the settings of a service and its model's config.json",
    ("service", "host"): "the settings of a service and its host; asked before a deploy",
    ("host", "settings"): "the settings of a host",
    ("host", "host"): "a host; asked before a deploy",
    ("unit", "unit"): "a systemd unit that is imported; those that are rendered here keep to it",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A rule in words.

    Attributes:
        title: what it finds.
        looks_at: what it has to see.
        why: what happens, and why it matters; paragraphs.
        evidence: where that is known from; paragraphs.
        fix: what to do; paragraphs.
        waiver: a comment that waives it; empty for a rule that cannot be waived, or has no setting to stand beside.
    """

    id: str
    severity: str
    title: str
    looks_at: str
    why: tuple[str, ...]
    evidence: tuple[str, ...]
    fix: tuple[str, ...]
    waiver: str


def explanation(rule: AnyRule) -> Explanation:
    """A rule in words."""
    said = rule.documentation
    has_place = rule.subject != "unit" and rule.id not in NEVER
    return Explanation(
        rule.id,
        rule.severity,
        said.title,
        _LOOKS_AT[rule.subject, rule.needs],
        _paragraphs(said.why),
        _paragraphs(said.evidence),
        _paragraphs(said.fix),
        f"# waive {rule.id}: the reason" if has_place else "",
    )


def _paragraphs(text: str) -> tuple[str, ...]:
    return tuple(" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text))
