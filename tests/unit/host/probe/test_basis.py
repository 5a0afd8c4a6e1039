"""JSON without the json module."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sglang_fleet.host.probe.basis import Unreadable, from_json, to_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_its_json_is_json(value: object) -> None:
    assert json.loads(to_json(value)) == value
    assert from_json(json.dumps(value), "x") == value
    assert to_json(value).isascii()


def refuse(name: str) -> None:
    raise ValueError(name)


@given(st.text())
@example("Infinity")
@example("\N{NEXT LINE}1")
@example("[1] x")
@example("")
def test_what_is_not_json_is_unreadable(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=refuse)
    except ValueError:
        with pytest.raises(Unreadable):
            from_json(text, "x")
    else:
        assert from_json(text, "x") == expected
