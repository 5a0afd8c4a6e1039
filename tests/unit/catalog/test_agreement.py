"""The catalogue's check and an argparse parser made from the same data agree, for any value."""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.standins.sglang.package import arguments
from sglang_fleet.catalog import Argument, catalogue
from sglang_fleet.catalog.store import entries

if TYPE_CHECKING:
    import argparse

CATALOGUE = catalogue("0.5.23")
PARSER = arguments.parser(entries("0.5.23"))

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.sampled_from(["8", "-1", "0.5", "1e3", "8k", "1.5Ki", "--", "-x", "none", '{"a": 1}', "[1]", "nan", " 8 "]),
)
values = st.one_of(scalars, st.lists(scalars, max_size=3), st.dictionaries(st.text(), scalars, max_size=2))
spelled = st.sampled_from(
    [argument.spelled(flag) for argument in CATALOGUE.arguments for flag in (argument.flag, *argument.aliases)]
)


def parsed(words: list[str]) -> argparse.Namespace | None:
    """What the parser makes of a command line; None when it refuses it."""
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            return PARSER.parse_args(["--model-path", "m", *words])
        except SystemExit:
            return None


def meant(argument: Argument, value: object) -> object:
    """The value the parser should arrive at for one that the check lets through."""
    if argument.nargs in ("*", "+"):
        items = value if isinstance(value, list) else [value]
        return [one(argument, item) for item in items]
    if argument.nargs == "?" and value is True:
        return ""
    return one(argument, value)


def one(argument: Argument, value: object) -> object:
    if argument.kind == "json":
        return json.loads(value) if isinstance(value, str) else json.loads(json.dumps(value))
    if argument.kind == "size" and isinstance(value, str):
        return arguments.size(value)
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"))
    convert = {"str": str, "int": int, "float": float, "size": int, "flag": bool, "switch": bool}[argument.kind]
    return convert(value)


@given(spelled, values)
def test_what_the_check_lets_through_the_parser_reads_back(argument: Argument, value: object) -> None:
    if CATALOGUE.check(argument.written, value) is not None:
        return
    words = argument.render(value)
    namespace = parsed(words)
    assert namespace is not None, words
    if words:
        assert repr(getattr(namespace, argument.destination)) == repr(meant(argument, value))


@given(spelled, st.one_of(st.integers(), st.text(), st.lists(st.one_of(st.integers(), st.text()), min_size=1)))
def test_what_the_check_refuses_the_parser_refuses(argument: Argument, value: object) -> None:
    """For the values that have one way to be written: whole numbers, text, and lists of them."""
    nothing_to_write = argument.kind in ("flag", "switch")
    stricter_than_argparse = argument.kind == "json" or (isinstance(value, list) and argument.nargs is None)
    items = value if isinstance(value, list) else [value]
    unwritable = any("\0" in str(item) or item == "--" for item in items)
    if nothing_to_write or stricter_than_argparse or unwritable:
        return
    if argument.nargs == "?" and isinstance(value, list):
        return
    if CATALOGUE.check(argument.written, value) is not None:
        assert parsed(argument.render(value)) is None


@pytest.mark.parametrize("argument", CATALOGUE.arguments, ids=lambda argument: argument.flag)
def test_every_choice_is_accepted(argument: Argument) -> None:
    for choice in argument.choices or ():
        assert argument.check(argument.name, choice) is None
        assert parsed(argument.render(choice)) is not None
