"""How a command tells the controller something that is not for the operator's eyes, between lines that are."""

MARK = "\x1e"
"""The record separator: what begins such a line, which the roles do not show (roles/terminal.py)."""

NOT_BEGUN = "not begun"
"""The outcome, in place of a result, of what never came to be an activation; it is told along, and written nowhere."""
