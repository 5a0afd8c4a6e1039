"""What stands in the row of a host that was refused."""

import pytest

from roles.preflight import _in_a_row
from sglang_fleet.checks import Refusal


@pytest.mark.parametrize(
    ("refusals", "row"),
    [
        (
            [Refusal("the probe failed: no", "python3 is needed there")],
            "the probe failed: no; fix: python3 is needed there",
        ),
        ([Refusal("no GPU")], "no GPU"),
        ([Refusal("no GPU", "add one"), Refusal("no driver", "install it")], "no GPU; no driver"),
    ],
)
def test_a_single_reason_comes_with_what_to_do(refusals: list[Refusal], row: str) -> None:
    assert _in_a_row(refusals) == row
