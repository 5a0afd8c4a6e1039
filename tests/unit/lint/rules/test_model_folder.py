"""The model's folder."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.observe import Unknown
from tests.unit.lint.host_views import PATH, WHOLE, host_view, messages

ABSENT = replace(WHOLE, exists=False, directory=False, index=False, bytes=0, config=None)
FILE = replace(ABSENT, exists=True)  # a GGUF file


@pytest.mark.parametrize(
    ("model", "index", "config"),
    [
        (WHOLE, False, False),
        (replace(WHOLE, index=False), True, False),
        (replace(WHOLE, index=False, bytes=0), True, False),
        (replace(WHOLE, config=None), False, True),
        (replace(WHOLE, config=Unknown("EIO")), False, False),
        (ABSENT, False, False),
        (FILE, False, False),
        (Unknown("EIO"), False, False),
    ],
)
def test_what_a_model_lacks(model: Any, index: bool, config: bool) -> None:  # noqa: ANN401, FBT001 - a case
    one = host_view(models={PATH: model})
    assert len(messages("SGL820", one)) == index
    assert len(messages("SGL821", one)) == config
    assert messages("SGL820", host_view(models={})) == []
