"""The one error the lab raises for what an operator can put right."""


class LabError(Exception):
    """Says what is wrong and what to do; the command line prints it without a stack trace."""
