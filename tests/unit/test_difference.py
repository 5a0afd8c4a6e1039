"""Differences as an operator reads them."""

from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.difference import readable, unified

lines = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), max_size=8)
texts = st.lists(lines, max_size=8).map(lambda found: "".join(f"{line}\n" for line in found))


def test_equal_texts_make_no_difference() -> None:
    assert unified(before="a\n", after="a\n", name="unit") == []


def test_what_is_new_is_said_to_be() -> None:
    assert unified(before="", after="a\n", name="unit") == ["--- unit (new)", "@@ -0,0 +1 @@", "+a"]


def test_only_the_surroundings_of_a_change_are_shown() -> None:
    before = "".join(f"{number}\n" for number in range(20))
    found = unified(before=before, after=before.replace("10\n", "ten\n"), name="unit")
    assert found == ["--- unit", "@@ -8,7 +8,7 @@", " 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13"]


def test_a_missing_line_end_is_a_difference() -> None:
    assert "-\\ no line end at the end of the file" in unified(before="a", after="a\n", name="unit")


def test_secrets_are_hidden_on_both_sides() -> None:
    found = unified(
        before="key0 old-poison\n", after="key0 new-poison\n", name="x", secrets=["old-poison", "new-poison"]
    )
    assert found == []  # nothing is left to show: what changed is told by the fingerprints
    shown = unified(before="a old-poison\n", after="b new-poison\n", name="x", secrets=["old-poison", "new-poison"])
    assert shown[-2:] == ["-a •••", "+b •••"]


def test_the_ids_of_releases_are_one_word() -> None:
    assert unified(before="/r/aaaa/x\n", after="/r/bbbb/x\n", name="unit", releases=["aaaa", "bbbb"]) == []


def test_odd_bytes_can_be_read() -> None:
    assert readable(b"caf\xc3\xa9 \xff\r\n") == "café \\xff␍\n"


@given(st.binary())
def test_any_bytes_can_be_read(content: bytes) -> None:
    assert "\r" not in readable(content)


@given(texts, texts)
def test_a_difference_tells_both_texts_apart_and_nothing_else(before: str, after: str) -> None:
    found = unified(before=before, after=after, name="x")
    assert bool(found) is (before != after)
    removed = [line[1:] for line in found[1:] if line.startswith("-")]
    added = [line[1:] for line in found[1:] if line.startswith("+")]
    assert len(after.splitlines()) - len(before.splitlines()) == len(added) - len(removed)
    assert set(removed) <= set(before.splitlines())
    assert set(added) <= set(after.splitlines())
