import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sglang_fleet.variables import Node, Place, dotted, find, gather, merge, place_of, plain
from sglang_fleet.variables.reading import read_bytes, read_file

NOWHERE = Place()
TWICE = "is written twice in the same mapping: first in line 2"


def project(folder: Path, **files: str) -> Path:
    """Write files; `group_vars__all` is `group_vars/all.yml`."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def values(folder: Path, *groups: str, **overrides: object) -> Any:  # noqa: ANN401
    found = gather(
        folder=folder,
        hosts={"h1": groups},
        overrides={name.replace("__", "."): value for name, value in overrides.items()},
    )
    assert not found.problems
    return plain(found.trees["h1"])


def flaw(text: str) -> tuple[int | None, str, str]:
    """Line, key and message of the one thing that is wrong with a file."""
    (problem,) = read_bytes(text.encode(), file=Path("all.yml")).problems
    return problem.line, problem.key, problem.message


def tree(value: object) -> Node:
    if isinstance(value, dict):
        return Node({name: tree(child) for name, child in value.items()}, NOWHERE, NOWHERE)
    if isinstance(value, list):
        return Node(tuple(tree(child) for child in value), NOWHERE, NOWHERE)
    assert value is None or isinstance(value, (str, int, float))
    return Node(value, NOWHERE, NOWHERE)


def raw(node: Node) -> object:
    """As `plain`, with nulls."""
    if isinstance(node.value, dict):
        return {name: raw(child) for name, child in node.value.items()}
    return plain(node)


# What wins.


def test_the_host_wins_over_its_groups_and_they_over_all(tmp_path: Path) -> None:
    project(
        tmp_path,
        group_vars__all="services: {a: all, b: all, c: all, d: all}",
        group_vars__amd="services: {b: amd, c: amd, d: amd}",
        group_vars__zen="services: {c: zen, d: zen}",
        host_vars__h1="services: {d: h1}",
    )
    assert values(tmp_path, "zen", "amd") == {"services": {"a": "all", "b": "amd", "c": "zen", "d": "h1"}}


def test_data_wins_over_everything(tmp_path: Path) -> None:
    project(tmp_path, host_vars__h1="rollout: {waves: [1], budget: 0}")
    assert values(tmp_path, rollout__waves=["100%"]) == {"rollout": {"waves": ["100%"], "budget": 0}}


def test_the_longer_of_two_data_keys_wins(tmp_path: Path) -> None:
    assert values(tmp_path, rollout__waves=[2], rollout={"waves": [1], "budget": 0}) == {
        "rollout": {"waves": [2], "budget": 0}
    }


def test_mappings_merge_deep_and_lists_replace(tmp_path: Path) -> None:
    project(tmp_path, group_vars__all="services: {k: {args: {a: 1}, gpus: [0, 1]}}")
    project(tmp_path, host_vars__h1="services: {k: {args: {b: 2}, gpus: [2]}}")
    assert values(tmp_path) == {"services": {"k": {"args": {"a": 1, "b": 2}, "gpus": [2]}}}


def test_null_removes_what_is_below(tmp_path: Path) -> None:
    project(tmp_path, group_vars__all="services: {k: {args: {a: 1, b: 2}}}")
    project(tmp_path, host_vars__h1="services: {k: {args: {a: null}}}")
    assert values(tmp_path) == {"services": {"k": {"args": {"b": 2}}}}


def test_keys_keep_the_order_in_which_they_were_first_written(tmp_path: Path) -> None:
    project(tmp_path, group_vars__all="services: {z: 1, a: 2}", host_vars__h1="services: {b: 3, z: 4}")
    assert list(values(tmp_path)["services"]) == ["z", "a", "b"]


def test_groups_of_other_hosts_have_no_say(tmp_path: Path) -> None:
    project(tmp_path, group_vars__other="cuda: 1", host_vars__h2="cuda: 1")
    assert values(tmp_path, "mine") == {}


# Files.


def test_a_folder_of_files_is_read_in_alphabetical_order(tmp_path: Path) -> None:
    project(tmp_path, group_vars__all__10="cuda: {a: 10}", group_vars__all__20="cuda: {a: 20}")
    (tmp_path / "group_vars/all/README.md").write_text("no settings")
    (tmp_path / "group_vars/all/.hidden.yml").write_text("cuda: {a: hidden}")
    assert values(tmp_path) == {"cuda": {"a": 20}}


@pytest.mark.parametrize("name", ["all", "all.yml", "all.yaml"])
def test_every_ending_of_ansible_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / name).write_text("cuda: 1")
    assert values(tmp_path) == {"cuda": 1}


def test_a_host_name_may_hold_dots(tmp_path: Path) -> None:
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars/gpu1.example.com.yml").write_text("cuda: 1")
    found = gather(folder=tmp_path, hosts={"gpu1.example.com": []}, overrides={})
    assert plain(found.trees["gpu1.example.com"]) == {"cuda": 1}


def test_two_files_for_one_name_are_refused(tmp_path: Path) -> None:
    project(tmp_path, group_vars__all="cuda: 1", group_vars__all__more="cuda: 2")
    found = gather(folder=tmp_path, hosts={"h1": []}, overrides={})
    assert [problem.message for problem in found.problems] == ["stands beside all.yml, for the same name"]
    assert not found.trees


def test_a_broken_file_spares_the_hosts_that_do_not_use_it(tmp_path: Path) -> None:
    project(tmp_path, group_vars__all="cuda: 1", host_vars__h2="cuda: [")
    found = gather(folder=tmp_path, hosts={"h1": [], "h2": []}, overrides={})
    assert list(found.trees) == ["h1"]
    assert [problem.hosts for problem in found.problems] == [("h2",)]


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    (problem,) = read_file(tmp_path / "none.yml").problems
    assert problem.message == "cannot be read: no such file or directory"


def test_a_file_is_parsed_once_until_it_changes(tmp_path: Path) -> None:
    file = project(tmp_path, a="cuda: 1") / "a.yml"
    first = read_file(file)
    assert read_file(file) is first
    file.write_text("cuda: 22")
    assert read_file(file) is not first


def test_hosts_of_equal_files_share_one_tree(tmp_path: Path) -> None:
    project(tmp_path, group_vars__all="cuda: 1")
    trees = gather(folder=tmp_path, hosts={"h1": [], "h2": []}, overrides={}).trees
    assert trees["h1"] is trees["h2"]


def test_only_the_network_is_read_of_what_stands_beside_a_host(tmp_path: Path) -> None:
    project(tmp_path, group_vars__all="network: {address: a, interface: i}", host_vars__h1="network: {address: b}")
    data: dict[str, dict[str, object]] = {
        "h1": {"network": {"address": "c"}, "ssh_user": "x", "cuda": 1},
        "h2": {"ssh_user": "y"},
    }
    trees = gather(folder=tmp_path, hosts={"h1": [], "h2": [], "h3": []}, overrides={}, inventory_data=data).trees
    assert plain(trees["h1"]) == {"network": {"address": "c", "interface": "i"}}
    assert plain(trees["h2"]) == {"network": {"address": "a", "interface": "i"}}
    assert trees["h2"] is trees["h3"]


# Overrides.


@pytest.mark.parametrize("name", ["ssh_user", "_sudo", "docker_identifier", "release", "release.k26"])
def test_overrides_of_others_are_left_alone(tmp_path: Path, name: str) -> None:
    found = gather(folder=tmp_path, hosts={"h1": []}, overrides={name: "x"}, also_known=["release"])
    assert not found.problems
    assert plain(found.trees["h1"]) == {}


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("rolout.waves", "did you mean rollout?"),
        ("servces", "did you mean services?"),
        ("x", "the settings are cuda, sglang, services, network, rollout"),
        ("cuda.", "did you mean cuda?"),
    ],
)
def test_an_unknown_override_is_a_problem(tmp_path: Path, name: str, fix: str) -> None:
    (problem,) = gather(folder=tmp_path, hosts={"h1": [], "h2": []}, overrides={name: 1}).problems
    assert (problem.key, problem.source, problem.fix) == (name, f"--data {name}", fix)
    assert problem.hosts == ("h1", "h2")


@pytest.mark.parametrize(
    ("given_", "read"),
    [
        ("[1, 50%]", [1, "50%"]),
        ("{a: 1}", {"a": 1}),
        ("a: b", "a: b"),
        ("50%", "50%"),
        ("[1, ", "[1, "),
        ((1, 2), [1, 2]),
        (True, True),
    ],
)
def test_only_lists_and_mappings_are_read_from_an_overrides_text(tmp_path: Path, given_: object, read: object) -> None:
    assert values(tmp_path, cuda=given_) == {"cuda": read}


def test_an_override_is_its_own_place(tmp_path: Path) -> None:
    project(tmp_path, group_vars__all="rollout: {waves: [1]}")
    found = gather(folder=tmp_path, hosts={"h1": []}, overrides={"rollout.waves": "[2, 50%]"})
    node, _ = find(found.trees["h1"], ("rollout", "waves", 1))
    assert place_of(node) == Place(source="--data rollout.waves")


# YAML.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("0.5.23", "0.5.23"),
        ("13.0", 13.0),
        ('"13.0"', "13.0"),
        ("'8'", "8"),
        ("0x10", 16),
        ("0o10", 8),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("!!str 8", "8"),
        ("!!float 8", 8.0),
        ("9" * 5000, "9" * 5000),
        ("[~, null]", [None, None]),
    ],
)
def test_words_mean_what_yaml_1_2_says(text: str, value: object) -> None:
    node = read_bytes(f"a: {text}\n".encode(), file=None).tree
    assert node is not None
    assert plain(node) == {"a": value}


def test_anchors_and_merge_keys_work() -> None:
    text = "base: &base {a: 1, b: 2}\nother: {<<: *base, b: 3}\nlist: {<<: [{x: 1}, {x: 2, y: 3}]}\n"
    node = read_bytes(text.encode(), file=None).tree
    assert node is not None
    assert plain(node) == {
        "base": {"a": 1, "b": 2},
        "other": {"a": 1, "b": 3},
        "list": {"x": 1, "y": 3},
    }


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        ("cuda:\n  a: 1\n  b: 2\n  a: 3\n", 4, "cuda.a", TWICE),
        ("cuda:\n\ta: 1\n", 2, "", "has a tab where YAML wants spaces"),
        ("cuda:\n   a: 1\n  b: 2\n", 3, "", "is not indented like the lines around it"),
        ("cuda: a: b\n", 1, "", "has ': ' where no key can stand"),
        ("cuda:\n  a: 'b\n", 2, "", "has a quote that is never closed"),
        ("cuda: *nothing\n", 1, "cuda", "uses an alias before its anchor"),
        ("cuda: &a [*a]\n", 1, "cuda[0]", "uses an alias inside of its own anchor"),
        ("cuda: !vault x\n", 1, "cuda", "has a value with a tag that is not supported"),
        ("cuda: !!int x\n", 1, "cuda", "has a value that is no int, as its tag says"),
        ("cuda: !set {a: 1}\n", 1, "cuda", "has a tag that is not supported"),
        ("cuda: {{ version }}\n", 1, "cuda", "has a list, mapping or alias as a key"),
        (": 1\n", 1, "", "has an empty key"),
        ("a: 1\n---\nb: 2\n", 2, "", "starts a second document"),
        ("cuda: {<<: [1]}\n", 1, "cuda.<<", "merges something that is no mapping"),
        ("a: \x00\n", 1, "", "holds a character that YAML does not allow"),
        ("$ANSIBLE_VAULT;1.1;AES256\n3030\n", 1, "", "is encrypted with ansible-vault"),
        ("a: {b: 1\nc: 2\n", 1, "", "has a '{' that is not closed, or a ',' is missing"),
        ("a: [", 1, "", "the text ends inside of a list"),
        ("b: 1\na: [1,\n 2\n", 2, "", "the text ends inside of a list"),
        ("a: {b: 1\n", 1, "", "the text ends inside of a mapping"),
        ("a: {b: ", 1, "", "the text ends inside of a mapping"),
        ("a: {b: [1, ", 1, "", "the text ends inside of a list"),
        ("a: {served_model_name: a: b}", 1, "", "has a value with ': ' in it"),
        ("a: [b: c: d]", 1, "", "has a value with ': ' in it"),
        ("x:\n  - [1, 2\n  b: 3\n", 3, "", "has a '[' that is not closed, or a ',' is missing"),
        ("a: [b\nc: 2\n", 2, "", "has a '[' that is not closed, or a ',' is missing"),
        ("a: *\n", 1, "", "has a value that starts with '*' or '&'"),
        ("- a\nb: 1\n", 2, "", "is not indented like the lines around it"),
        ("a: @b\n", 1, "", "has a value that starts with '@'"),
        ("a: %b\n", 1, "", "has a value that starts with '%'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said_plainly(text: str, line: int, key: str, message: str) -> None:
    assert flaw(text) == (line, key, message)


def test_a_file_that_is_not_utf_8() -> None:
    (problem,) = read_bytes(b"a: 1\nb: \xff\n", file=None).problems
    assert (problem.line, problem.message) == (2, "is not UTF-8 text")


@pytest.mark.parametrize("text", ["- a\n", "word\n", "8\n"])
def test_a_file_that_is_no_mapping(tmp_path: Path, text: str) -> None:
    project(tmp_path, group_vars__all=text)
    (problem,) = gather(folder=tmp_path, hosts={"h1": []}, overrides={}).problems
    assert problem.message == "is no mapping of settings"


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "---\n# nothing\n...\n", "null\n"])
def test_a_file_without_settings(tmp_path: Path, text: str) -> None:
    project(tmp_path, group_vars__all=text)
    assert values(tmp_path) == {}


def test_aliases_that_grow_without_bound_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert flaw("\n".join(lines))[2] == "holds more than 50000 values, counting each alias"


def test_nesting_without_bound_is_refused() -> None:
    assert flaw("a: " + "[" * 5000)[2] == "is nested deeper than 40 levels"


def test_dotted() -> None:
    assert dotted(("rollout", "waves", 0)) == "rollout.waves[0]"


# Properties.

_scalars = st.none() | st.integers() | st.text(max_size=3) | st.booleans() | st.lists(st.integers(), max_size=2)
_words = st.text("abcxyz", min_size=1, max_size=4)
Values = st.SearchStrategy[object]


# Named functions, because hypothesis reads the source of a lambda to see whether it recurses.
def _inside(inner: Values) -> Values:
    # A key is either always a mapping or never one: only then is a deep merge associative.
    return st.dictionaries(st.sampled_from(["map_a", "map_b"]), inner, max_size=2)


def _lists_and_mappings(inner: Values) -> Values:
    return st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3)


_leaves = st.dictionaries(st.sampled_from(["leaf_a", "leaf_b"]), _scalars, max_size=2)
_trees = st.recursive(_leaves, _inside, max_leaves=8).map(tree)


@given(_trees, _trees, _trees)
def test_merging_is_associative(one: Node, two: Node, three: Node) -> None:
    assert raw(merge(merge(one, two), three)) == raw(merge(one, merge(two, three)))


@given(_trees)
def test_merging_with_nothing_or_with_itself_changes_nothing(one: Node) -> None:
    assert raw(merge(one, tree({}))) == raw(merge(tree({}), one)) == raw(merge(one, one)) == raw(one)


_letters = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
_json = st.recursive(_letters | st.integers(), _lists_and_mappings, max_leaves=12)


def leaves(node: Node) -> list[Node]:
    children = node.value.values() if isinstance(node.value, dict) else node.value
    if isinstance(children, (str, int, float)) or children is None:
        return [node]
    return [leaf for child in children for leaf in leaves(child)]


@given(st.dictionaries(_words, _json, max_size=4))
def test_every_leaf_remembers_a_line_that_holds_it(value: dict[str, object]) -> None:
    lines = json.dumps(value, indent=1).splitlines()  # JSON is YAML
    node = read_bytes("\n".join(lines).encode(), file=Path("x")).tree
    assert node is not None
    assert plain(node) == value
    for leaf in leaves(node):
        assert leaf.place.line is not None
        assert str(leaf.value) in lines[leaf.place.line - 1]


_yaml_like = st.text(st.sampled_from("ab:-{}[]&*!|>'\"%@#,?\n\t 1.~<"), max_size=60)


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=400)
@given(st.binary(max_size=80) | st.text(max_size=80).map(str.encode) | _yaml_like.map(str.encode))
def test_garbage_gives_problems_never_an_exception(content: bytes) -> None:
    reading = read_bytes(content, file=Path("x"))
    assert (reading.tree is None) <= bool(reading.problems)
    if reading.tree is not None:
        plain(reading.tree)
