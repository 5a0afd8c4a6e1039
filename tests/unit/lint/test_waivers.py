"""Comments that keep a finding away, and those that only look like it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.lint.waivers import comments, of_file, read, waived
from sglang_fleet.problems import Problem


def lines(text: str) -> dict[tuple[int, str], str]:
    found = read(text)
    assert not found.flaws
    return {place: waiver.reason for place, waiver in found.by_place.items()}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("a: 1 # waive SGL201: why\n", {(1, "SGL201"): "why"}),
        ("a: 1 #waive SGL201:why\n", {(1, "SGL201"): "why"}),
        ("a: 1 # Waive sgl201 : why: because\n", {(1, "SGL201"): "why: because"}),
        ("# waive SGL201: why\na: 1\n", {(2, "SGL201"): "why"}),
        ("# waive SGL201: why\n# another\na: 1\n", {(3, "SGL201"): "why"}),
        ("# waive SGL201: one\n# waive SGL501: two\na: 1\n", {(3, "SGL201"): "one", (3, "SGL501"): "two"}),
        ("a: 1 # waive SGL121: a, SGL123: b\n", {(1, "SGL121"): "a", (1, "SGL123"): "b"}),
        ("a: 1 # waive SGL121: a; waive SGL123: b\n", {(1, "SGL121"): "a", (1, "SGL123"): "b"}),
        (
            "a: 1 # waive SGL121, SGL122: a, b, SGL123: c: d\n",
            {(1, "SGL121"): "a, b", (1, "SGL122"): "a, b", (1, "SGL123"): "c: d"},
        ),
        ("a: 1 # waive SGL121: a, H200: b\n", {(1, "SGL121"): "a, H200: b"}),
        ("a: 1 # waive SGL121: as SGL123 says, and 12: 30\n", {(1, "SGL121"): "as SGL123 says, and 12: 30"}),
        ("# waive SGL201, SGL501: both\na: 1\n", {(2, "SGL201"): "both", (2, "SGL501"): "both"}),
        ("a: 1 # it was so # waive SGL201: why\n", {(1, "SGL201"): "why"}),
        ("a: # waive SGL201: why\n  b: 1\n", {(1, "SGL201"): "why"}),
        ("a: {b: 1, # waive SGL201: why\n  c: 1}\n", {(1, "SGL201"): "why"}),
        ("a: | # waive SGL201: why\n  text\n", {(1, "SGL201"): "why"}),
        ("a: 1 # waive SGL201: why\r\nb: 1\r\n", {(1, "SGL201"): "why"}),
        ("a:\n- 1\n  # waive SGL201: why\n- 2\n", {(4, "SGL201"): "why"}),
    ],
)
def test_a_waiver_stands_beside_the_setting_or_above_it(text: str, places: dict[tuple[int, str], str]) -> None:
    assert lines(text) == places


@pytest.mark.parametrize(
    "text",
    [
        "a: '1 # waive SGL201: why'\n",
        'a: "1 # waive SGL201: why"\n',
        "a: |\n  # waive SGL201: why\n",
        "a: >-\n  b # waive SGL201: why\n",
        "a: b#waive SGL201\n",
        "a: 'x\n  # waive SGL201: why\n  y'\n",
    ],
)
def test_a_sign_inside_of_a_value_is_no_waiver(text: str) -> None:
    assert list(comments(text)) == []
    assert lines(text) == {}


@pytest.mark.parametrize(
    "text",
    [
        "a: 1 # waive the fee\n",
        "a: 1 # waived 3 of 201 fees\n",
        "a: 1 # waive 999 fees\n",
        "a: 1 # see SGL201\n",
        "a: 1 # see SGL201 in docs\n",
        "a: 1 # see SGL201: it explains why\n",
        "a: 1 # SGL201 explains why\n",
        "a: 1 # the lint rule SGL201 would say so\n",
        "a: 1 # we ignore what SGL201 says\n",
        "a: 1 # ignore this\n",
        "a: 1 # SGL999: x\n",
        "a: 1 # wave SGLANG goodbye\n",
        "a: 1 # noqa\n",
    ],
)
def test_a_sentence_with_the_word_in_it_is_no_waiver(text: str) -> None:
    assert lines(text) == {}


def test_a_blank_line_ends_what_stands_directly_above() -> None:
    assert lines("# waive SGL201: why\n\na: 1\n") == {(2, "SGL201"): "why"}


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# waive SGL201", "gives no reason"),
        ("# waive SGL201:", "gives no reason"),
        ("# waive SGL201: -", "gives no reason"),
        ("# waive SGL201 since it fails", "the colon is missing"),
        ("# waive SGL999: why", "no such rule"),
        ("# waive E501: why", "no such rule"),
        ("# waive", "of no rule"),
        ("# waive: why", "of no rule"),
        ("# waive SGL001: why", "cannot be waived"),
    ],
)
def test_a_waiver_without_rule_or_reason_waives_nothing_and_is_said(comment: str, said: str) -> None:
    found = read(f"a: 1\nb: 1 {comment}\n")
    assert not found.by_place
    ((line, message, fix),) = found.flaws
    assert line == 2
    assert said in message
    assert fix


@pytest.mark.parametrize(
    "comment",
    [
        "# waive 201: x",
        "# waive: 201 x",
        "# waives SGL201: x",
        "# waived SGL201: x",
        "# Waiver SGL201: x",
        "# see the ticket; waive SGL201: x",
        "# we waive the rule SGL201 here",
        "# SGL201 is waived: x",
        "# waive rule SGL201: x",
        "# waive (SGL201): x",
        "# waive SGL-201",
        "# wavie SGL201: x",
        "# wave SGL201: x",
        "# waived: SGL201: x",
        "# ignore SGL201: x",
        "# ignore: SGL201",
        "# disable=SGL201",
        "# skip SGL201: x",
        "# noqa: SGL201",
        "# NOQA SGL201",
        "# nolint: SGL201",
        "# lint: disable=SGL201",
        "# lint-ignore SGL201: x",
        "# type: ignore[SGL201]",
        "# SGL201: x",
        "# sgl201: x",
        "# waive SGL 201: x",
        "# waive sgl 201: x",
    ],
)
def test_what_looks_like_a_waiver_and_is_none_is_said_with_the_right_spelling(comment: str) -> None:
    found = read(f"a: 1\nb: 1 {comment}\n")
    assert not found.by_place
    ((line, message, fix),) = found.flaws
    assert line == 2
    assert "201" in message
    assert "SGL201" in fix or "explain" in fix


@pytest.mark.parametrize(
    ("comment", "message", "fix"),
    [
        ("# wavie SGL201: x", "looks like a waiver of SGL201, and is none", "write # waive SGL201: and the reason"),
        ("# waive SGL 201: x", "waives SGL 201, which is no rule", "write # waive SGL201: and the reason"),
        ("# waive SGL201 because x", "waives SGL201, and the colon is missing", "write # waive SGL201: and the reason"),
        ("# waive SGL201, SGL501 since x", "waives SGL201, and the colon", "write # waive SGL201: and the reason"),
        ("# waive SGL20l: x", "waives SGL20l, and there is no such rule", "did you mean SGL201?"),
        ("# waive SGL2O1: x", "waives SGL2O1, and there is no such rule", "did you mean SGL201?"),
        ("# waive SGL2O1, SGL501: x", "waives SGL2O1, and there is no such rule", "did you mean SGL201?"),
        ("# waive SGL21: x", "waives SGL21, and there is no such rule", "`sglang-fleet explain` lists them"),
    ],
)
def test_what_is_wrong_with_a_waiver_is_said(comment: str, message: str, fix: str) -> None:
    line, said, advice = read(f"a: 1\nb: 1 {comment}\n").flaws[0]
    assert line == 2
    assert said.startswith(message)
    assert advice == fix


def test_a_comment_that_only_looks_like_a_waiver_is_found_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "all.yml"
    file.write_text("a: 1 # noqa: SGL201\n")
    assert of_file(file).flaws


def test_of_several_rules_the_good_ones_hold() -> None:
    found = read("a: 1 # waive SGL201, SGL999: why\n")
    assert list(found.by_place) == [(1, "SGL201")]
    assert len(found.flaws) == 1


def test_a_file_with_errors_has_none() -> None:
    assert not read("a: 1 # waive SGL201: why\nb: 'open\n").by_place


def test_the_reason_is_found_by_a_problems_place(tmp_path: Path) -> None:
    file = tmp_path / "all.yml"
    file.write_text("a: 1\nb: 1 # waive SGL201: why\n")
    assert waived(Problem(file, 2, "b", "x"), "SGL201") == "why"
    assert waived(Problem(file, 1, "a", "x"), "SGL201") == ""
    assert waived(Problem(file, 2, "b", "x"), "SGL501") == ""
    assert waived(Problem(None, None, "b", "x", source="--data b"), "SGL201") == ""
    assert waived(Problem(file, None, "", "x"), "SGL201") == ""


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "all.yml"
    file.write_text("a: 1 # waive SGL201: why\n")
    assert of_file(file).by_place
    file.write_text("a: 1\n")
    assert not of_file(file).by_place
    file.unlink()
    assert not of_file(file).by_place


PARTS = st.sampled_from(["word", "'it''s # no'", '"no # no"', "12", "{x: 1, y: '#'}", "[a, b]", "|\n  # no\n", "a#b"])


@given(st.lists(st.tuples(PARTS, st.sampled_from(["", " # c", " #", "  # c # d"])), max_size=6))
def test_every_comment_is_found_and_nothing_else(parts: list[tuple[str, str]]) -> None:
    text, expected = "", []
    for number, (value, comment) in enumerate(parts):
        beside = "" if value.endswith("\n") else comment
        text += f"k{number}: {value}{beside}".rstrip("\n") + "\n"
        if beside:
            expected.append(beside.strip())
    assert [comment.text for comment in comments(text)] == expected
