"""Waves, budget and verdicts: which replicas may change next, and which must go back. Pure, no clock of its own."""

from sglang_fleet.rollout.cutting import cut, pause_problem
from sglang_fleet.rollout.outcome import Outcome, Verdict
from sglang_fleet.rollout.replica import Replica, Wave
from sglang_fleet.rollout.state import Rollout

__all__ = ["Outcome", "Replica", "Rollout", "Verdict", "Wave", "cut", "pause_problem"]
