"""The one error an operator may see from a host."""


class HostError(Exception):
    """Something foreseeable stopped a step on the host.

    Args:
        what: one sentence that says what was found, naming the file, process or value.
        fix: what the operator can do about it; empty when there is nothing to add.
    """

    def __init__(self, what: str, *, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix

    @property
    def told(self) -> str:
        """Both as one line, for a place that has one."""
        return f"{self.what}; {self.fix}" if self.fix else self.what
