"""What an operator got wrong, said so that it can be put right: where, what, and what to do."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_fleet.masking import mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WIDTH = 76  # 80 columns, less the margin of roles/terminal.py
_HOSTS_NAMED = 8


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, at one place.

    Attributes:
        file: the file that holds the setting, or None where there is none (a `--data` override).
        line: counted from 1, or None where the whole file is meant.
        key: the dotted path of the setting, such as `services.k26.args.tp_size`; may be empty.
        message: what is wrong, as the end of a sentence that starts with the key.
        fix: what to do about it; may be empty.
        hosts: the hosts that it concerns, in inventory order; empty where it concerns no host in particular.
        source: where the setting comes from when not from a file, such as `--data cuda.version`.
        rule: the lint rule that a warning belongs to; empty for what is wrong.
    """

    file: Path | None
    line: int | None
    key: str
    message: str
    fix: str = ""
    hosts: tuple[str, ...] = ()
    source: str = ""
    rule: str = ""


def grouped(problems: Iterable[Problem]) -> list[Problem]:
    """The same problems, sorted by place, with those that differ in nothing but their hosts made one."""
    hosts: dict[Problem, dict[str, None]] = {}
    for problem in problems:
        hosts.setdefault(replace(problem, hosts=()), {}).update(dict.fromkeys(problem.hosts))
    found = [replace(problem, hosts=tuple(names)) for problem, names in hosts.items()]
    return sorted(found, key=lambda problem: (str(problem.file or ""), problem.line or 0, problem.key))


def render(problems: Iterable[Problem], *, relative_to: Path | None = None) -> str:
    """All problems as text of 80 columns, one paragraph each.

    File names are relative to a folder, by default the current one.
    """
    folder = (relative_to or Path.cwd()).absolute()
    return "\n".join("\n".join(paragraph(problem, folder=folder)) for problem in grouped(problems))


def paragraph(problem: Problem, *, folder: Path, label: str = "", hosts_named: int = _HOSTS_NAMED) -> list[str]:
    """One problem as lines of 80 columns.

    Args:
        problem: what is wrong.
        folder: the names of files are relative to it.
        label: a word on what kind of problem it is, between place and key.
        hosts_named: how many hosts are named; of more, the rest is counted.
    """
    where, key = place(problem, folder=folder), shown_key(problem.key)
    head = (" " if where == "--data" and not label else "  ").join(part for part in (where, label, key) if part)
    lines = [_printable(head)] if head else []
    if label and len(lines[0]) > _WIDTH:
        lines = [_printable("  ".join(part for part in (where, label) if part)), _printable(f"    {key}")]
    hosts = names(problem.hosts, most=hosts_named)
    lines += wrapped(f"{problem.message} ({hosts})" if hosts else problem.message)
    if problem.fix:
        lines += wrapped(f"fix: {problem.fix}")
    return lines


def shown_key(key: str) -> str:
    """A setting's path as it may be shown: who writes `HF_TOKEN=…` as a key has put a secret there."""
    return mask(key)


def place(problem: Problem, *, folder: Path) -> str:
    """Where it is, as `FILE:LINE`, the file relative to a folder where it is below that."""
    if problem.file is None:
        # The key of an override says itself where it is, unless the fault is deeper inside of its value.
        return mask(problem.source.removesuffix(problem.key).strip() if problem.key else problem.source)
    shown = inside(problem.file.absolute(), folder)
    return f"{shown}:{problem.line}" if problem.line is not None else str(shown)


def names(hosts: Sequence[str], *, most: int = 12) -> str:
    """Hosts in a sentence, cut short when there are many."""
    shown = ", ".join(hosts[:most])
    return shown if len(hosts) <= most else f"{shown} and {len(hosts) - most} more"


def inside(file: Path, folder: Path) -> Path:
    """The file as it is named in a folder: relative where it is below that, else as it is."""
    return file.relative_to(folder) if file.is_relative_to(folder) else file


def wrapped(text: str) -> list[str]:
    """A text below a head, as lines of 80 columns."""
    return textwrap.wrap(
        _printable(text),
        width=_WIDTH,
        initial_indent="    ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _printable(text: str) -> str:
    """The text without anything that could move a terminal's cursor: keys come from files as they are."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
