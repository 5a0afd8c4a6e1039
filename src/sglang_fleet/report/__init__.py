"""The texts an operator reads: the plan with equal differences grouped, and the verdicts."""

from sglang_fleet.report.planned import plan_lines, settings_line
from sglang_fleet.report.verdicts import verdict_lines

__all__ = ["plan_lines", "settings_line", "verdict_lines"]
