"""Show and write the new texts of files of settings."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_fleet.masking import is_sensitive, mask
from sglang_fleet.variables.reading import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.fixing import Change
    from sglang_fleet.variables import Node


class ChangedMeanwhileError(Exception):
    """The file is no longer what was read."""


def diff(name: str, change: Change) -> str:
    """A unified diff without secrets; `name` is the file's, as it is shown."""
    hidden = {*_secrets(change.before), *_secrets(change.after)}
    lines = unified_diff(change.before.splitlines(), change.after.splitlines(), f"a/{name}", f"b/{name}", lineterm="")
    # Line by line: a quote that is open in one line must not hide the lines below it.
    return "\n".join(mask(_printable(line), hidden) for line in lines)


def write(file: Path, change: Change) -> None:
    """Put the new text in place of the old one, at once; a link stays one, and mode and owner stay.

    Raises:
        ChangedMeanwhileError: somebody else has changed the file since it was read.
        OSError: it cannot be written.
    """
    target = Path(os.path.realpath(file))
    status = target.stat()
    if target.read_bytes() != change.before.encode():
        raise ChangedMeanwhileError(file)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(change.after.encode())
            new.flush()
            os.fsync(new.fileno())
            with suppress(PermissionError):  # only root may give a file away
                os.fchown(new.fileno(), status.st_uid, status.st_gid)
            os.fchmod(new.fileno(), status.st_mode & 0o7777)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _secrets(text: str) -> Iterator[str]:
    """Each line of each value that stands below a key with a telling name."""
    tree = read_bytes(text.encode(), file=None).tree
    if tree is not None:
        yield from _below(tree, hidden=False)


def _below(node: Node, *, hidden: bool) -> Iterator[str]:
    if isinstance(node.value, dict):
        for name, child in node.value.items():
            yield from _below(child, hidden=hidden or is_sensitive(name))
    elif isinstance(node.value, tuple):
        for child in node.value:
            yield from _below(child, hidden=hidden)
    elif hidden and isinstance(node.value, str):
        yield from (line.strip() for line in node.value.splitlines())


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
