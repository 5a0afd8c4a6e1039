"""A plan kept in a file: what was wanted, what each host was like, and whether either has changed since."""

from sglang_fleet.saved_plan.comparing import compare, settings_changed
from sglang_fleet.saved_plan.fingerprinting import fingerprint
from sglang_fleet.saved_plan.kept import Origin, PlanUnusable, SavedHost, SavedPlan

__all__ = ["Origin", "PlanUnusable", "SavedHost", "SavedPlan", "compare", "fingerprint", "settings_changed"]
