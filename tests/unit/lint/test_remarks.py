"""No comment is lost without a word."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.lint.bench import Step
from sglang_fleet.lint.edits import edited
from sglang_fleet.lint.found import Edit, Remove, Rename, Set
from sglang_fleet.lint.remarks import lost, remarks
from sglang_fleet.lint.run import Finding
from sglang_fleet.lint.waivers import comments
from sglang_fleet.problems import Problem

FILE = Path("all.yml")
FINDING = Finding("SGL201", "warning", Problem(FILE, 1, "a", "x"))


def said(text: str, *edits: Edit) -> list[tuple[str, int | None]]:
    """The comments that are spoken of after the edits, with their lines where they are left."""
    steps: list[Step] = []
    for edit in edits:
        moved = ""
        if isinstance(edit, Set) and edit.instead_of:
            moved = " ".join(lost(text, edited(text, Remove(edit.instead_of))))
        after = edited(text, edit, comment=moved)
        steps.append(Step(FINDING, FILE, edit, text, after, moved))
        text = after
    return [(remark.comment, remark.line) for remark in remarks(steps, {FILE: text})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1 # why\nb: 2\n", [("# why", None)]),
        ("b: 2 # b's\na: 1 # why\n", [("# why", None)]),
        ("a: 1\nb: 2 # b's\n", []),
        ("# above\na: 1\nb: 2\n", [("# above", 1)]),
        ("b: 2\n# above\n# more\na: 1 # why\n", [("# why", None), ("# above …", 2)]),
        ("# head\n\na: 1\nb: 2\n", []),
        ("a: # why\n- 1 # one\n- 2\nb: 1\n", [("# why", None), ("# one", None)]),
        ("x: {a: 1, # why\n  b: 2}\n", []),
        ("b: 1\n# same\na: 1\n# same\nc: 1\n", [("# same", 2)]),
    ],
)
def test_a_comment_that_goes_or_stays_behind_is_named(text: str, expected: list[tuple[str, int | None]]) -> None:
    key = "x.a" if text.startswith("x") else "a"
    assert said(text, Remove(key)) == expected


def test_a_new_name_keeps_its_comments() -> None:
    assert said("# above\na: 1 # why\nb: 2\n", Rename("a", "c")) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("e:\n  A: 1 # why\n  B: 1\nn:\n  p: 1\n", "e:\n  B: 1\nn:\n  p: 1\n  a: 1 # why\n"),
        ("e:\n  A: 1 # why\nn:\n  p: 1\n", "e: {}\nn:\n  p: 1\n  a: 1 # why\n"),
        ("e:\n  A: 1 # why\nn: {p: 1}\n", "e: {}\nn: {p: 1, a: 1} # why\n"),
        ("e:\n  A: 1 # why\nn: {p: 1} # n's\n", "e: {}\n# why\nn: {p: 1, a: 1} # n's\n"),
        ("e:\n  A: 1 # why\n", 'e: {}\n"n": {a: 1} # why\n'),
        ("x:\n  e:\n    A: 1 # why\n  n: {p: 1} # n's\n", "x:\n  e: {}\n  # why\n  n: {p: 1, a: 1} # n's\n"),
        ("e: {A: 1, B: 2} # both\nn: {}\n", "e: {B: 2} # both\nn: {a: 1}\n"),
        ("e:\r\n  A: 1 # why\r\n  B: 1\r\nn: {p: 1} # n\r\n", "e:\r\n  B: 1\r\n# why\r\nn: {p: 1, a: 1} # n\r\n"),
    ],
)  # fmt: skip
def test_a_comment_moves_with_its_setting(before: str, after: str) -> None:
    key = "x." if before.startswith("x") else ""
    old = f"{key}e.A"
    text = before
    moved = " ".join(lost(text, edited(text, Remove(old))))
    text = edited(text, Set(f"{key}n.a", 1, instead_of=old), comment=moved)
    assert edited(text, Remove(old)) == after
    assert said(before, Set(f"{key}n.a", 1, instead_of=old), Remove(old)) == []


BESIDE, ABOVE = st.sampled_from(["", " # why", " # other"]), st.sampled_from(["", "# up\n", "\n"])
LINE = st.tuples(st.sampled_from("abcd"), BESIDE, ABOVE)
LINES = st.lists(LINE, min_size=2, max_size=4, unique_by=lambda line: line[0])


@given(LINES)
def test_every_comment_is_there_or_named(lines: list[tuple[str, str, str]]) -> None:
    text = "".join(f"{above}{name}: 1{beside}\n" for name, beside, above in lines)
    after = edited(text, Remove(lines[0][0]))
    gone = sorted(comment for comment, line in said(text, Remove(lines[0][0])) if line is None)
    left = sorted(comment.text for comment in comments(after))
    assert sorted([*gone, *left]) == sorted(comment.text for comment in comments(text))
