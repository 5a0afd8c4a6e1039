from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tools.catalogue.modules import UnresolvedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.catalogue.static_values import Sources

MODULE = """
    class Mode(IntEnum):
        NONE = 0

    FIRST = 1
    if windows:
        LATER = 2
    GROWN = []
    GROWN += [1]
    TWICE = 1
    TWICE = 2
    TABLE = {}
    TABLE["a"] = 1
    """


@pytest.mark.parametrize(
    "text",
    [
        *("os.environ", "nobody", "f(1)", "x if y else z", "[m.size for m in Mode]", "[m for m in FIRST if m]"),
        *("LATER", "GROWN", "TWICE", "TABLE", "FIRST[0]", "field(default_factory=dict)"),
    ],
)
def test_a_value_that_one_literal_does_not_tell_is_unresolved(release: Callable[..., Sources], text: str) -> None:
    sources = release(module=MODULE)
    expression = ast.parse(text, mode="eval").body
    with pytest.raises(UnresolvedError):
        sources.value(expression, sources.module("sglang/module.py"))
