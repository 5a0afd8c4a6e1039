"""What is known to go wrong, as rules: each a small function with an id, its reasons in its docstring.

`rules/` holds them by subject. `run.lint` judges settings; roles/preflight.py asks the rules that need a host; the
rules about units hold for every unit that `render` makes, and say what `import` changes about one written by hand.
"""

from sglang_fleet.lint.found import Found, Remove, Rename, Set
from sglang_fleet.lint.rule import Rule, Severity, host_rule, service_rule, unit_rule
from sglang_fleet.lint.views import HostView, ServiceView, UnitView

__all__ = [
    "Found",
    "HostView",
    "Remove",
    "Rename",
    "Rule",
    "ServiceView",
    "Set",
    "Severity",
    "UnitView",
    "host_rule",
    "service_rule",
    "unit_rule",
]
