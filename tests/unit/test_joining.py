"""Modules joined into one source mean what they mean apart; what would not is refused."""

import ast

import pytest

from sglang_fleet.joining import JoiningError, joined

FIRST = '''\
"""A docstring."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Text = str

LIMIT = 3  # bytes


def cut(text: Text) -> Text:
    """Of a function: stays."""
    return text[:LIMIT] + os.sep
'''
SECOND = """\
from __future__ import annotations

import os
from os.path import (
    basename,
    join as put,
)

from .first import (
    LIMIT,
    cut,
)

RESULT = cut("abcdef"), LIMIT, put("a", basename("b/c")), os.sep
"""


def test_joined_modules_do_what_they_did() -> None:
    text = joined({"first": FIRST, "second": SECOND})
    names: dict[str, object] = {}
    exec(text, names)  # noqa: S102 - the text above
    assert names["RESULT"] == ("abc/", 3, "a/c", "/")


def test_nothing_is_left_of_what_one_source_does_without() -> None:
    text = joined({"first": FIRST, "second": SECOND})
    imports = "from os.path import basename\nfrom os.path import join as put\nimport os\n"
    assert text.startswith(f"from __future__ import annotations\n\n{imports}")
    assert text.count("import os\n") == text.count("annotations\n") == 1
    assert not any(word in text for word in ("typing", "TYPE_CHECKING", "A docstring.", "Callable", "first import"))
    assert "LIMIT = 3  # bytes\n" in text
    assert '"""Of a function: stays."""' in text
    ast.parse(text)


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ("LIMIT = 4\n", "LIMIT is defined twice: by first and by second"),
        ("def cut(): pass\n", "cut is defined twice: by first and by second"),
        ("class cut: pass\n", "cut is defined twice: by first and by second"),
        ("try:\n    import cut\nexcept ImportError:\n    pass\n", "cut is defined twice: by first and by second"),
        ("for LIMIT in (): pass\n", "LIMIT is defined twice: by first and by second"),
        ("from json import loads as cut\n", "cut is defined twice"),
        ("import json as os\n", "os is defined twice: by import os and by import json as os"),
        ("os = 1\n", "os is defined twice: by import os and by second"),
        ("def open(): pass\n", "open is defined twice: by Python and by second"),
        ("from .first import cut as trim\n", "second: from .first import cut as trim: names must stay what they are"),
        ("from .first import *\n", "names must stay what they are"),
        ("from .third import cut\n", "second: takes from .third, which does not come before it"),
        ("from ..first import cut\n", "second: takes from ..first, which does not come before it"),
        ("from . import first\n", "second: takes from ., which does not come before it"),
        ("def f():\n    from .first import cut\n", "second: a relative import below the top level"),
    ],
)
def test_what_would_change_its_meaning_is_refused(second: str, why: str) -> None:
    with pytest.raises(JoiningError) as refused:
        joined({"first": FIRST, "second": second})
    assert why in str(refused.value)


def test_the_order_matters() -> None:
    with pytest.raises(JoiningError, match=r"takes from \.first, which does not come before it"):
        joined({"second": SECOND, "first": FIRST})
