"""What a YAML text means, and what it means after a change."""

import pytest

from sglang_fleet.lint.found import Edit, Remove, Rename, Set
from sglang_fleet.lint.values import applied, data
from sglang_fleet.variables.reading import read_bytes


def meaning(text: str, *, nulls: bool = True) -> object:
    tree = read_bytes(text.encode(), file=None).tree
    assert tree is not None
    return data(tree, nulls=nulls)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a: 1\n", "a: '1'\n"),
        ("a: 1\n", "a: 1.0\n"),
        ("a: true\n", "a: 1\n"),
        ("a:\n", "a: {}\n"),
        ("a: []\n", "a: {}\n"),
    ],
)
def test_values_of_different_kinds_differ(one: str, other: str) -> None:
    assert meaning(one) != meaning(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a: .nan\n", "a: .NaN\n"), ("a: {b: 1}\n", "a:\n  b: 0x1\n"), ("a: &x 1\nb: *x\n", "a: 1\nb: 1\n")],
)
def test_spelling_does_not_count(one: str, other: str) -> None:
    assert meaning(one) == meaning(other)


def test_a_key_without_a_value_counts_unless_it_shall_not() -> None:
    assert meaning("a: 1\nb:\n") != meaning("a: 1\n")
    assert meaning("a: 1\nb:\n", nulls=False) == meaning("a: 1\n")


@pytest.mark.parametrize(
    ("edit", "after"),
    [
        (Remove("a.b"), "a: {c: 2}\nd: 3\n"),
        (Remove("a"), "d: 3\n"),
        (Remove("x.y"), "a: {b: 1, c: 2}\nd: 3\n"),
        (Rename("a.b", "n"), "a: {n: 1, c: 2}\nd: 3\n"),
        (Set("a.b", value=True), "a: {b: true, c: 2}\nd: 3\n"),
        (Set("a.n", "x"), "a: {b: 1, c: 2, n: x}\nd: 3\n"),
        (Set("n.m", 0.5), "a: {b: 1, c: 2}\nd: 3\nn: {m: 0.5}\n"),
    ],
)
def test_an_edit_changes_one_setting_and_keeps_the_order(edit: Edit, after: str) -> None:
    before = read_bytes(b"a: {b: 1, c: 2}\nd: 3\n", file=None).tree
    assert before is not None
    assert repr(applied(data(before), edit)) == repr(meaning(after))
