from typing import Any

import pytest

from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL230", "schedule_policy", args={"enable_priority_scheduling": True, "schedule_policy": "lpm"}),
        finds("SGL231", "disable_priority_preemption", args={"disable_priority_preemption": True}),
        finds("SGL231", "default_priority_value", args={"default_priority_value": 0}),
        finds("SGL232", "enable_pdmux", args={"enable_pdmux": True, "disable_overlap_schedule": True}),
        finds(
            "SGL232",
            "enable_pdmux",
            args={
                "enable_pdmux": True,
                "disable_overlap_schedule": True,
                "chunked_prefill_size": -1,
                "disaggregation_mode": "prefill",
            },
            words="disaggregation_mode",
        ),
        finds("SGL233", "enable_two_batch_overlap", args={"enable_two_batch_overlap": True, "tp_size": 8}),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL230", args={"enable_priority_scheduling": True}),
        passes("SGL230", args={"enable_priority_scheduling": True, "schedule_policy": "lof"}),
        passes("SGL230", args={"schedule_policy": "lpm"}),
        passes("SGL231", args={"disable_priority_preemption": True, "enable_priority_scheduling": True}),
        passes("SGL231", args={"disable_priority_preemption": False}),
        passes("SGL232", args={"enable_pdmux": True, "disable_overlap_schedule": True, "chunked_prefill_size": -1}),
        passes("SGL232", args={"chunked_prefill_size": -1}),
        passes("SGL233", args={"enable_two_batch_overlap": True, "tp_size": 8, "moe_a2a_backend": "deepep"}),
        passes("SGL233", args={"enable_two_batch_overlap": True, "tp_size": 8, "attn_dp_size": 8}),
        passes("SGL233", args={"tp_size": 8}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
