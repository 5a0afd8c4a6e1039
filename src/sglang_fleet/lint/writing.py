"""Show and write the new texts of files of settings."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from difflib import unified_diff
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_fleet.lint.bench import Change
from sglang_fleet.masking import is_sensitive, mask
from sglang_fleet.variables.reading import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from sglang_fleet.variables import Node


_HUNK = re.compile(r"@@ -(?P<old>[0-9]+)(?:,(?P<olds>[0-9]+))? \+(?P<new>[0-9]+)(?:,(?P<news>[0-9]+))? @@")


class NotWrittenError(Exception):
    """Nothing was written: `why` a file cannot be; empty when it is no longer what was read."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(f"{file}: {why}")
        self.file, self.why = file, why


class _ChangedError(Exception):
    """The file is no longer what was read."""


def diff(name: str, change: Change) -> str:
    """A unified diff without secrets, each line with its end; `name` is the file's, as shown.

    Lines that cannot be shown as they are stand in it only where they change, as far as `git apply` allows.
    """
    lines, _ = _unified(name, change)
    return "".join(f"{shown}\n" for shown in lines)


def can_be_applied(change: Change) -> bool:
    """Whether `git apply` takes the diff: not where a line of it is masked."""
    return _unified("", change)[1]


def _unified(name: str, change: Change) -> tuple[list[str], bool]:
    """The lines of the diff as they are shown, and whether they are those of the files."""
    hidden = secrets(change.before) | secrets(change.after)
    old, new = (_lines(text) for text in (change.before, change.after))

    @cache
    def shown(line: str) -> tuple[str, ...]:
        # Line by line: a quote that is open in one line must not hide the lines below it.
        return tuple(_shown(line, hidden))

    def differs(line: str) -> bool:
        return shown(line)[0] != line.removesuffix("\n")

    for context in (3, 2, 1):
        diff = list(unified_diff(old, new, f"a/{name}", f"b/{name}", n=context))
        lines = [*diff[:2], *_without_masked_beginnings(diff[2:], differs)]
        if not any(map(differs, lines[2:])):
            return [part for line in lines for part in shown(line)], True
    return [part for line in unified_diff(old, new, f"a/{name}", f"b/{name}") for part in shown(line)], False


def _without_masked_beginnings(lines: Sequence[str], differs: Callable[[str], bool]) -> Iterator[str]:
    """The same hunks, each from below the last masked line above its first change.

    What is below the last change stays: without any of it, git takes that for the end of the file.
    """
    at = 0
    while at < len(lines):
        head = _HUNK.match(lines[at])
        at += 1
        if head is None:
            yield lines[at - 1]
            continue
        above = list(takewhile(lambda line: line.startswith(" "), lines[at:]))
        left_out = max((number for number, line in enumerate(above, 1) if differs(line)), default=0)
        old, new = (_range(int(head[side]), head[f"{side}s"], left_out) for side in ("old", "new"))
        yield f"@@ -{old} +{new} @@\n" if left_out else lines[at - 1]
        at += left_out


def _range(start: int, count: str | None, left_out: int) -> str:
    """A hunk's lines without the first ones, as a patch says it: of none, the line before."""
    left = int(count or 1) - left_out
    return f"{start + left_out - (not left)}" + (f",{left}" if left != 1 else "")


def _lines(text: str) -> list[str]:
    """The lines as a patch has them: with their ends, and only a line feed is one."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [line for line in text.split("\n")[-1:] if line]


def _shown(line: str, hidden: Collection[str]) -> list[str]:
    body = line.removesuffix("\n")
    end = "\r" if body.endswith("\r") else ""
    shown = mask(_printable(body.removesuffix("\r")), hidden) + end
    return [shown] if line.endswith("\n") else [shown, "\\ No newline at end of file"]


def write(changes: Mapping[Path, Change]) -> None:
    """Put the new texts in place of the old ones, all or none; a link stays one, and mode and owner stay.

    Raises:
        NotWrittenError: one of the files has changed since it was read, or cannot be written; says which and why.
    """
    staged: dict[Path, Path] = {}
    done: list[tuple[Path, Change]] = []
    file = Path()
    try:
        for file, change in changes.items():
            target = Path(os.path.realpath(file))
            staged[target] = _staged(target, change)
        for file, change in changes.items():
            target = Path(os.path.realpath(file))
            staged[target].replace(target)
            done.append((target, change))
    except OSError as error:
        for target, change in done:
            with suppress(OSError):
                _staged(target, Change(change.after, change.before)).replace(target)
        raise NotWrittenError(file, (error.strerror or str(error)).lower()) from None
    except _ChangedError:
        raise NotWrittenError(file, "") from None
    finally:
        for new in staged.values():
            new.unlink(missing_ok=True)


def _staged(target: Path, change: Change) -> Path:
    """The new text in a file beside the old one."""
    status = target.stat()
    if target.read_bytes() != change.before.encode():
        raise _ChangedError
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(change.after.encode())
            new.flush()
            os.fsync(new.fileno())
            with suppress(PermissionError):  # only root may give a file away
                os.fchown(new.fileno(), status.st_uid, status.st_gid)
            os.fchmod(new.fileno(), status.st_mode & 0o7777)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def secrets(text: str) -> frozenset[str]:
    """Each line and each word of each value that stands below a telling name, or in a list behind a telling flag."""
    tree = read_bytes(text.encode(), file=None).tree
    return frozenset() if tree is None else frozenset(_below(tree, hidden=False))


def _below(node: Node, *, hidden: bool) -> Iterator[str]:
    if isinstance(node.value, dict):
        for name, child in node.value.items():
            yield from _below(child, hidden=hidden or is_sensitive(name))
    elif isinstance(node.value, tuple):
        flag = ""
        for child in node.value:
            yield from _below(child, hidden=hidden or is_sensitive(flag))
            flag = child.value if isinstance(child.value, str) and child.value.startswith("-") else ""
    elif hidden and isinstance(node.value, str):
        # Words, too: a long text may be folded over several lines.
        yield from (line.strip() for line in node.value.splitlines())
        yield from node.value.split()
    elif hidden and node.text is not None:
        yield node.text


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\t" else ascii(char)[1:-1] for char in text)
