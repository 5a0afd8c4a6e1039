"""What becomes of the comments around settings that are put right: none may be lost without a word."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_fleet.lint.edits import NotEditableError, place_of_key
from sglang_fleet.lint.found import Remove
from sglang_fleet.lint.waivers import Comment, comments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from sglang_fleet.lint.bench import Step
    from sglang_fleet.lint.run import Finding


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment that an edit took along, or left behind.

    Attributes:
        finding: what was put right.
        file: the file.
        comment: with its `#`; of several lines the first.
        line: where it stands now, from 1; None when it is gone.
    """

    finding: Finding
    file: Path
    comment: str
    line: int | None


def lost(before: str, after: str) -> list[str]:
    """The comments of a YAML text that another one has not."""
    start = next((at for at, pair in enumerate(zip(before, after, strict=False)) if len(set(pair)) > 1), len(after))
    removed = before[max(start - 1, 0) : start + len(before) - len(after) + len(" {}")]
    if "#" not in removed and len(after) < len(before):
        return []  # looking for comments costs as much as reading the YAML
    gone = Counter(comment.text for comment in comments(before)) - Counter(comment.text for comment in comments(after))
    return list(gone.elements())


def remarks(steps: Iterable[Step], texts: Mapping[Path, str]) -> Iterator[Remark]:
    """What to say of the comments around settings that were taken away.

    Args:
        steps: the edits that were made.
        texts: what the files hold after all of them.
    """
    moved = Counter((step.file, step.moved) for step in steps if step.moved)
    for step in steps:
        if not isinstance(step.edit, Remove):
            continue
        gone = lost(step.before, step.after)
        if moved[step.file, " ".join(gone)]:
            moved[step.file, " ".join(gone)] -= 1
        else:
            yield from (Remark(step.finding, step.file, comment, None) for comment in gone)
        above = _above(step.before, step.edit.key)
        if above:
            line = _line_in(texts.get(step.file, step.after), above[0])
            more = " …" if len(above) > 1 else ""
            yield Remark(step.finding, step.file, above[0].text + more, line)


def _above(text: str, key: str) -> list[Comment]:
    """The comments on the lines directly above a setting."""
    try:
        line = place_of_key(text, key)
    except NotEditableError:
        return []
    if line is None or not text.split("\n")[line - 2].lstrip().startswith("#"):
        return []
    alone = {comment.line: comment for comment in comments(text) if comment.alone}
    found: list[Comment] = []
    while (line := line - 1) in alone:
        found.insert(0, alone[line])
    return found


def _line_in(text: str, wanted: Comment) -> int | None:
    """Where a comment stands in a text that was changed elsewhere."""
    lines = [comment.line for comment in comments(text) if comment.alone and comment.text == wanted.text]
    return min(lines, key=lambda line: abs(line - wanted.line), default=None)
