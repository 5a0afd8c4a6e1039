"""YAML that loads back to exactly what was meant, by readers of YAML 1.2 and 1.1."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sglang_fleet.importing.basis import Note
from sglang_fleet.importing.yaml_text import document, scalar
from sglang_fleet.variables import plain
from sglang_fleet.variables.reading import read_bytes

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
scalars = words | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=8
)


@settings(max_examples=200)
@given(
    words
    | st.sampled_from(["1", "0x1", "1_000", "0b1", "1:30", "2001-01-01", "1e3", ".5", "off", "No", "~", "<<", "="])
)
def test_a_text_stays_a_text_for_every_reader(text: str) -> None:
    for version in ("1.1", "1.2"):
        yaml = YAML(typ="safe", pure=True)
        yaml.version = version
        for in_flow in (False, True):
            assert yaml.load(f"a: {scalar(text, in_flow=in_flow)}\n") == {"a": text}


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), values, max_size=4))
def test_a_document_loads_back(settings_in: dict[str, Any]) -> None:
    text = document({"services": {"a": {"args": settings_in, "x": settings_in}}}, notes=(), source="x", beside={})
    tree = read_bytes(text.encode(), file=Path("all.yml")).tree
    assert tree is not None
    assert plain(tree) == {"services": {"a": {"args": settings_in, "x": settings_in}}}


@given(words)
def test_a_note_stays_a_comment(text: str) -> None:
    made = document({"a": 1}, notes=[Note(1, text)], source=text, beside={"a": text})
    assert YAML(typ="safe", pure=True).load(made) == {"a": 1}


@pytest.mark.parametrize("text", ["0.5.23", "10.0.0.1", "30m", "1h30m", "/root/models/Kimi-K2.6", "K2.6 PP8 (a, b)"])
def test_usual_words_need_no_quotes(text: str) -> None:
    assert scalar(text) == text


@pytest.mark.parametrize("number", [0.1, 1e300, 1e-7, 5e-324, 123456789.0, math.pi, -0.0])
def test_numbers_keep_all_digits(number: float) -> None:
    assert YAML(typ="safe", pure=True).load(f"a: {scalar(number)}\n") == {"a": number}
