"""Show and write the new texts of files of settings."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_fleet.lint.bench import Change
from sglang_fleet.masking import is_sensitive, mask
from sglang_fleet.variables.reading import read_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sglang_fleet.variables import Node


class NotWrittenError(Exception):
    """Nothing was written: `why` a file cannot be; empty when it is no longer what was read."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(f"{file}: {why}")
        self.file, self.why = file, why


class _ChangedError(Exception):
    """The file is no longer what was read."""


def diff(name: str, change: Change) -> str:
    """A unified diff without secrets, which `git apply` takes where it holds none; `name` is the file's, as shown."""
    hidden = secrets(change.before) | secrets(change.after)
    old, new = (_lines(text) for text in (change.before, change.after))
    lines = unified_diff(old, new, f"a/{name}", f"b/{name}")
    # Line by line: a quote that is open in one line must not hide the lines below it.
    return "\n".join(shown for line in lines for shown in _shown(line, hidden))


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
