"""What must hold for the catalogue file, whichever releases it has."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any, get_args

import pytest

from sglang_fleet.catalog import Kind, catalogue, versions
from sglang_fleet.catalog.store import DATA, accepted, entries, order
from tools.catalogue import file

DATA_TEXT = DATA.read_text()
FILE: dict[str, Any] = json.loads(DATA_TEXT)
KEYS = [
    *("flag", "in", "kind", "reader", "aliases", "destination", "nargs", "choices", "default", "const"),
    *("required", "refused", "deprecated"),
]


def spans(entry: dict[str, Any]) -> list[list[str]]:
    return [span.split("-") for span in entry["in"].split(", ")] if "in" in entry else []


def test_it_is_small() -> None:
    assert len(DATA_TEXT) < 400_000


def test_the_tool_would_write_it_as_it_is() -> None:
    assert file.text(file.read()) == DATA_TEXT


def test_every_release_names_its_wheel() -> None:
    assert list(FILE["releases"]) == sorted(FILE["releases"], key=order)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in FILE["releases"].values())
    assert len(set(FILE["releases"].values())) == len(FILE["releases"])


def test_the_lines_are_those_of_known_releases() -> None:
    for entry in FILE["arguments"]:
        assert set(entry) <= set(KEYS)
        assert list(entry) == sorted(entry, key=KEYS.index)
        for ends in spans(entry):
            known = [versions().index(version) for version in ends if version]
            assert known == sorted(set(known))


def test_no_line_is_there_twice_and_all_are_in_order() -> None:
    lines = [json.dumps({key: value for key, value in entry.items() if key != "in"}) for entry in FILE["arguments"]]
    assert len(set(lines)) == len(lines)
    begin = [(entry["flag"], order(spans(entry)[0][0]) if "in" in entry else ((), ())) for entry in FILE["arguments"]]
    assert all(one < other for one, other in pairwise(begin))


@pytest.mark.parametrize("version", versions())
def test_a_release_has_each_name_once(version: str) -> None:
    names = [flag for entry in entries(version) for flag in (entry["flag"], *entry.get("aliases", ()))]
    assert len(set(names)) == len(names)
    assert all(name.startswith("--") for name in names)
    assert all(version in accepted()[name.removeprefix("--").replace("-", "_")] for name in names)


@pytest.mark.parametrize("version", versions())
def test_the_arguments_of_a_release_make_sense(version: str) -> None:
    known = catalogue(version)
    assert [argument.flag for argument in known.arguments if argument.required] == ["--model-path"]
    defaults: dict[str, object] = {}
    for argument in known.arguments:
        assert argument.kind in get_args(Kind)
        assert argument.nargs in (None, "?", "*", "+")
        assert argument.choices is None or (argument.choices and argument.kind not in ("flag", "switch"))
        assert repr(defaults.setdefault(argument.destination, argument.default)) == repr(argument.default)
        assert argument.deprecated != ""
        assert argument.refused is None or argument.advice


def test_a_release_that_is_not_there_has_no_lines() -> None:
    assert entries("0.5.99") == []
