"""What has to happen on each host: pure functions of what is wanted and what the probe saw."""

from sglang_fleet.plan.changes import HostPlan, ServiceChange
from sglang_fleet.plan.making import make_plan, serving, why_activate
from sglang_fleet.plan.replicas import held_back, tie

__all__ = [
    "HostPlan",
    "ServiceChange",
    "held_back",
    "make_plan",
    "serving",
    "tie",
    "why_activate",
]
