from __future__ import annotations

import ast

import pytest

from tools.catalogue.known_code import digest


def of(text: str) -> str:
    return digest(ast.parse(text).body[0])


@pytest.mark.parametrize(
    "other",
    [
        'def f(a):\n    "What it does."\n    return a + 1',
        "def f(a):  # quickly\n\n    return (a + 1)",
        "def f(\n    a,\n):\n    return a + 1",
    ],
)
def test_words_and_layout_are_no_new_code(other: str) -> None:
    assert of(other) == of("def f(a):\n    return a + 1")


@pytest.mark.parametrize("other", ["def f(a):\n    return a + 2", "def f(b):\n    return b + 1", "def f(a): pass"])
def test_other_code_has_another_digest(other: str) -> None:
    assert of(other) != of("def f(a):\n    return a + 1")
