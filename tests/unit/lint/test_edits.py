"""Changes of YAML texts: what they mean afterwards, and that no other line is touched."""

import difflib
import re
import sys

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sglang_fleet.lint.edits import NotEditableError, edited, scalar
from sglang_fleet.lint.found import Edit, Remove, Rename, Set
from sglang_fleet.lint.values import applied, data
from sglang_fleet.variables import Node, find, scalars
from sglang_fleet.variables.reading import read_bytes

ARGS = """\
services:
  k26: # the model
    args:
      model_path: /models/k26
      disable_cuda_graph: true # since capture failed
      # about the port
      port: 30001

    nccl: {p2p_level: 5, algo: Ring} # NCCL_…
"""


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("a: 1\nb: 2 # beside\nc: 3\n", "b", "a: 1\nc: 3\n"),
        ("a: 1\nb:\n  c: 2\n  d: 3 # x\ne: 4\n", "b", "a: 1\ne: 4\n"),
        ("a: 1\nb: |\n  text # no comment\n\nc: 3\n", "b", "a: 1\n\nc: 3\n"),
        ("a: 1\nb: one\n  two\nc: 3\n", "b", "a: 1\nc: 3\n"),
        ("a: 1\nb:\n- 1\n- 2\nc: 3\n", "b", "a: 1\nc: 3\n"),
        ("a: 1\nb:\nc: 3\n", "b", "a: 1\nc: 3\n"),
        ("a: 1\n# above\nb: 2\n", "b", "a: 1\n# above\n"),
        ("a: 1\nb: 2", "b", "a: 1\n"),
        ("a: 1\r\nb: 2\r\nc: 3\r\n", "b", "a: 1\r\nc: 3\r\n"),
        ("\ufeffa: 1\nb: 2\n", "a", "\ufeffb: 2\n"),
        ("'a': 1\n\"b\": 2\n", "b", "'a': 1\n"),
        ("# nothing else\na: 1\n", "a", "# nothing else\n"),
        ("---\na: 1\n", "a", "---\n"),
        ("o: 1\na: # why\n  b: 1 # x\nc: 2\n", "a.b", "o: 1\na: {} # why\nc: 2\n"),
        ("a:\n  # about b\n  b: 1\nc: 2\n", "a.b", "a: {}\n  # about b\nc: 2\n"),
        ("a: &x\n  b: 1\nc: 2\n", "a.b", "a: &x {}\nc: 2\n"),
        ("a: {b: 1}\n", "a.b", "a: {}\n"),
        ("a: { b: 1 }\n", "a.b", "a: {}\n"),
        ("a: {b: 1, c: 2} # beside\n", "a.b", "a: {c: 2} # beside\n"),
        ("a: {b: 1, c: 2} # beside\n", "a.c", "a: {b: 1} # beside\n"),
        ("a: {b: 1, c: 2, d: 3}\n", "a.c", "a: {b: 1, d: 3}\n"),
        ("a: { b: 1, c: 2, }\n", "a.c", "a: { b: 1, }\n"),
        ("a: {\n  b: 1, # one\n  c: 2, # two\n  d: 3 # three\n}\n", "a.c", "a: {\n  b: 1, # one\n  d: 3 # three\n}\n"),
        ("a: {\n  b: 1, # one\n  c: 2 # two\n}\n", "a.c", "a: {\n  b: 1, # one\n}\n"),
        ("a: {b: 1, # one\n  c: 2}\n", "a.c", "a: {b: 1, # one\n}\n"),
        ("a: {b: 1,\n  c: 2}\n", "a.c", "a: {b: 1}\n"),
        ("a: {b: 1, c: 2, # both\n  d: 3}\n", "a.c", "a: {b: 1, # both\n  d: 3}\n"),
        ("a: 1\n", "b", "a: 1\n"),
        ("a: 1\n", "b.c", "a: 1\n"),
    ],
)
def test_a_setting_is_taken_away_with_the_comment_beside_it(before: str, key: str, after: str) -> None:
    assert edited(before, Remove(key)) == after


@pytest.mark.parametrize(
    ("before", "key", "name", "after"),
    [
        ("a: 1 # x\nb: 2\n", "a", "c", "c: 1 # x\nb: 2\n"),
        ("'a' : 1\n", "a", "c", "'c' : 1\n"),
        ('x: {"a":1,"b":2}\n', "x.a", "c", 'x: {"c":1,"b":2}\n'),
        ("x:\n  a:\n    - 1\n", "x.a", "c", "x:\n  c:\n    - 1\n"),
    ],
)
def test_a_setting_gets_another_name_and_keeps_all_else(before: str, key: str, name: str, after: str) -> None:
    assert edited(before, Rename(key, name)) == after


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("a: 1 # x\nb: 2\n", "a", 3, "a: 3 # x\nb: 2\n"),
        ("a: 'one'\n", "a", "two", "a: 'two'\n"),
        ('a: "one"\n', "a", "it's", 'a: "it\'s"\n'),
        ("a: one\n  word\nb: 1\n", "a", True, "a: true\nb: 1\n"),
        ("a:\nb: 1\n", "a", 0.5, "a: 0.5\nb: 1\n"),
        ("a: # none\nb: 1\n", "a", "x", "a: x # none\nb: 1\n"),
        ("b: &x 1\na: *x\n", "a", 2, "b: &x 1\na: 2\n"),
        ("a: {b: 1, c: 2}\n", "a.b", "x, y", 'a: {b: "x, y", c: 2}\n'),
    ],
)
def test_a_value_is_replaced(before: str, key: str, value: float | str, after: str) -> None:
    assert edited(before, Set(key, value)) == after


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("a:\n    b: 1 # x\n# y\n\nc: 2\n", "a.new", "a:\n    b: 1 # x\n    new: 8\n# y\n\nc: 2\n"),
        ("a:\n  b: 1", "a.new", "a:\n  b: 1\n  new: 8"),
        ("a:\r\n  b: 1\r\n", "a.new", "a:\r\n  b: 1\r\n  new: 8\r\n"),
        ("a:\n  b:\n    - 1\n    - 2\nc: 1\n", "a.new", "a:\n  b:\n    - 1\n    - 2\n  new: 8\nc: 1\n"),
        ("a:\n  b: >-\n    x\n\nc: 1\n", "a.new", "a:\n  b: >-\n    x\n  new: 8\n\nc: 1\n"),
        ("a: {}\n", "a.new", "a: {new: 8}\n"),
        ("a: {b: 1} # x\n", "a.new", "a: {b: 1, new: 8} # x\n"),
        ('a: {"b": 1}\n', "a.new", 'a: {"b": 1, "new": 8}\n'),
        ("a: {b: 1, }\n", "a.new", "a: {b: 1, new: 8, }\n"),
        ("a: {\n  b: 1 # x\n}\n", "a.new", "a: {\n  b: 1, # x\n  new: 8\n}\n"),
        ("a: {\n  b: 1, # x\n}\n", "a.new", "a: {\n  b: 1, # x\n  new: 8,\n}\n"),
        ("a: {\n  b: 1,\n  c: 2}\n", "a.new", "a: {\n  b: 1,\n  c: 2,\n  new: 8}\n"),
        ("a:\nb: 1\n", "a.new", "a: {new: 8}\nb: 1\n"),
        ("a: ~\nb: 1\n", "a.new", "a: {new: 8}\nb: 1\n"),
        ("b: 1\n", "a.c.new", "b: 1\na: {c: {new: 8}}\n"),
        ("", "new", "new: 8\n"),
        ("# nothing", "new", "# nothing\nnew: 8\n"),
        ("x: &x {new: 1}\na:\n  <<: *x\n", "a.new", "x: &x {new: 1}\na:\n  <<: *x\n  new: 8\n"),
    ],
)
def test_a_new_setting_comes_last_in_its_mapping_and_in_its_style(before: str, key: str, after: str) -> None:
    assert edited(before, Set(key, 8)) == after


@pytest.mark.parametrize(
    ("text", "edit", "why"),
    [
        ("a: &x {b: 1}\nc: *x\n", Remove("c.b"), "comes through the alias *x"),
        ("a: &x {b: 1}\nc: *x\n", Remove("a.b"), "stands below the anchor &x, which is used elsewhere too"),
        ("a: &x\n  b: 1\nc:\n  <<: *x\n  d: 1\n", Set("a.e", 1), "stands below the anchor &x"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n", Remove("c.b"), "comes from another mapping by <<"),
        ("a: &x 1\nb: *x\n", Remove("a"), "holds the anchor &x, which is used elsewhere too"),
        ("a: &x 1\nb: *x\n", Set("a", 2), "holds the anchor &x"),
        ("a: 1\nb: 2\n", Rename("a", "b"), "cannot become b, which is written too"),
        ("a: 1\n", Rename("b", "c"), "is not written there"),
        ("a: [1]\n", Set("a", 2), "holds more than a plain value"),
        ("a: |\n  x\n", Set("a", 2), "holds more than a plain value"),
        ("a: !!str 1\n", Set("a", 2), "holds more than a plain value"),
        ("a: 1\n", Set("a.b", 2), "would stand in something that is no mapping"),
        ("? a\n: 1\nb: 2\n", Remove("a"), "shares its line with something else"),
        ("a: 1\na: 2\n", Remove("a"), "stands in a file with errors"),
        ("a: [\n", Remove("a"), "stands in a file with errors"),
        ("a: |+\n  x\n\nb: 1\n", Remove("b"), ""),
    ],
)
def test_what_cannot_be_changed_alone_is_refused_with_the_reason(text: str, edit: Edit, why: str) -> None:
    if not why:
        assert edited(text, edit) == "a: |+\n  x\n\n"
        return
    with pytest.raises(NotEditableError, match=why.replace("*", r"\*")):
        edited(text, edit)


def test_the_rest_of_a_realistic_file_stays_as_it_is() -> None:
    without = edited(ARGS, Remove("services.k26.args.disable_cuda_graph"))
    assert without == ARGS.replace("      disable_cuda_graph: true # since capture failed\n", "")
    assert edited(without, Set("services.k26.args.tp_size", 8)) == without.replace(
        "30001\n", "30001\n      tp_size: 8\n"
    )


@given(st.one_of(st.text(), st.booleans(), st.integers(), st.floats()))
def test_every_value_is_written_so_that_it_is_read_again(value: float | str) -> None:
    try:
        read = read_bytes(f"a: {{b: {scalar(value)}, c: 1}}\n".encode(), file=None).tree
    except UnicodeEncodeError:  # half of a character, which no file can hold
        return
    if read is None:  # a control character, which no YAML may hold
        assert isinstance(value, str)
        return
    wanted = {"a": {"b": (type(value).__name__, repr(value)), "c": ("int", "1")}}
    assert data(read) == wanted


@pytest.mark.parametrize("word", ["true", "null", "12", "yes", "off", "", "- a", "#", "a: b", "a #b", "~", "1.5", "*a"])
def test_a_text_that_would_be_something_else_is_quoted(word: str) -> None:
    assert scalar(word).startswith('"')


# Random files of many layouts: each line of a block is drawn with its indentation, comments, blank lines and quotes.

NAMES = st.sampled_from(["a", "b", "tp_size", "k26", "d-e", "f.g", "x y"])
COMMENTS = st.sampled_from(["", "", " # beside", " #", "\t# tab", "   "])
BETWEEN = st.sampled_from(["", "", "", "\n", "# alone\n", "      # deep\n", "\n\n# two\n"])
PLAIN = st.sampled_from(
    [
        "1",
        "0.50",
        "true",
        "null",
        "~",
        "word",
        "two words",
        "'it''s # no comment'",
        '"q\\n"',
        "&p 7",
        "!!str 5",
        "0x1F",
        "a#b",
    ]
)
BLOCKS = st.sampled_from(
    ["|\n{0}text # no comment\n", ">-\n{0}folded\n\n{0}more\n", "|+\n{0}kept\n\n", "one\n{0}two\n"]
)


@st.composite
def flows(draw: st.DrawFn, depth: int = 0) -> str:
    """A mapping in braces, or a list in brackets."""
    if draw(st.integers(0, 3)) == 0:
        return f"[{', '.join(draw(st.lists(PLAIN.filter(lambda text: text[0] != '&'), max_size=3)))}]"
    parts = []
    for name in draw(st.lists(NAMES, unique=True, max_size=4)):
        value = draw(flows(depth + 1)) if depth < 2 and draw(st.booleans()) else draw(PLAIN)
        parts.append(f'"{name}": {value}' if draw(st.integers(0, 3)) == 0 else f"{name}: {value}")
    gap = draw(st.sampled_from([", ", ",", ",\n          ", ", # why\n          ", " , "]))
    ends = draw(
        st.sampled_from([("", ""), (" ", " "), ("\n          ", "\n          "), ("", ","), ("", " # c\n          ")])
    )
    if not parts:
        return draw(st.sampled_from(["{}", "{ }"]))
    return "{" + ends[0] + gap.join(parts) + ends[1] + "}"


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0, indent: str = "") -> str:
    """A block mapping, each line with an end."""
    text = ""
    for name in draw(st.lists(NAMES, unique=True, min_size=1, max_size=4)):
        written = draw(st.sampled_from([name, f"'{name}'", f'"{name}"']))
        head = f"{draw(BETWEEN)}{indent}{written}{draw(st.sampled_from([':', ' :', ':']))}"
        kind = draw(st.integers(0, 5))
        step = draw(st.sampled_from(["  ", "    ", " "]))
        if kind == 0 and depth < 3:
            text += f"{head}{draw(COMMENTS)}\n{draw(blocks(depth + 1, indent + step))}"
        elif kind == 1:
            text += f"{head} {draw(flows())}{draw(COMMENTS)}\n"
        elif kind == 2:
            text += f"{head} {draw(BLOCKS).format(indent + step)}"
        elif kind == 3:
            text += f"{head}{draw(COMMENTS)}\n" + "".join(
                f"{indent}- {draw(PLAIN.filter(lambda text: text[0] != '&'))}\n" for _ in range(draw(st.integers(1, 2)))
            )
        elif kind == 4 and draw(st.booleans()):
            text += f"{head}{draw(COMMENTS)}\n"
        else:
            text += f"{head} {draw(PLAIN)}{draw(COMMENTS)}\n"
    return text


@st.composite
def files(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(["", "", "# head\n", "---\n", "\ufeff"])) + draw(blocks())
    text += draw(st.sampled_from(["", "", "# tail\n", "\n\n", "# tail"]))
    if draw(st.integers(0, 3)) == 0:
        text = text.rstrip("\n")
    return text.replace("\n", "\r\n") if draw(st.integers(0, 4)) == 0 else text


VALUES: st.SearchStrategy[str | float] = st.sampled_from([8, 0.85, True, "triton", "yes", "x: y"])


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, Edit]:
    text = draw(files())
    tree = read_bytes(text.encode(), file=None).tree
    path: list[str] = []
    while tree is not None and isinstance(tree.value, dict) and tree.value:
        name = draw(st.sampled_from(sorted(name for name in tree.value)))
        path.append(name)
        tree = tree.value[name]
        if draw(st.booleans()):
            break
    if any("." in name for name in path):
        path = ["a"]
    value: str | float = draw(VALUES)
    kind = draw(st.sampled_from(["remove", "rename", "set", "add"]))
    key = ".".join(path)
    match kind:
        case "remove":
            return text, Remove(key)
        case "rename":
            return text, Rename(key, "new_name")
        case "set":
            return text, Set(key, value)
        case _:
            return text, Set(".".join([*(path if tree and isinstance(tree.value, dict) else path[:-1]), "new"]), value)


@settings(max_examples=400, deadline=None)
@given(cases())
def test_a_change_means_what_it_should_and_touches_no_other_line(case: tuple[str, Edit]) -> None:
    text, edit = case
    before = read_bytes(text.encode(), file=None)
    if before.tree is None or before.problems:
        event("no valid YAML")
        return
    try:
        made = edited(text, edit)
    except NotEditableError as error:
        event(f"refused: {error}")
        return
    event(type(edit).__name__)
    after = read_bytes(made.encode(), file=None).tree
    assert after is not None
    assert repr(data(after) if after.value is not None else {}) == repr(applied(data(before.tree), edit))
    old, new = _lines(text), _lines(made)
    first, last = _lines_concerned(before.tree, edit)
    assert new[:first] == old[:first]
    assert new[len(new) - len(old[last:]) :] == old[last:]
    added = [line for line in difflib.ndiff(old, new) if line.startswith("+ ")]
    assert len(added) <= 2


def _lines(text: str) -> list[str]:
    return re.findall(r".*?(?:\r\n|\n|$)", text)


def _lines_concerned(tree: Node, edit: Edit) -> tuple[int, int]:
    """How many lines are before the key that is above the one that changes; and with that which is below it."""
    node, _ = find(tree, tuple(edit.key.split(".")))
    inside = [line for line, _ in _keys(node)]
    others = [line for line, child in _keys(tree) if child is not node and line not in inside]
    at = [node.key.line or 0, *inside]
    before = max((line for line in others if line < min(at)), default=0)
    after = min((line for line in others if line > max(at)), default=sys.maxsize)
    return max(before - 1, 0), after


def _keys(node: Node) -> list[tuple[int, Node]]:
    if not isinstance(node.value, dict):
        return []
    return [pair for child in node.value.values() for pair in ((child.key.line or 0, child), *_keys(child))]


def test_the_words_that_are_written_are_those_that_are_read() -> None:
    assert scalars.plain(scalar(float("inf"))) == float("inf")
