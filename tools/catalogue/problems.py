"""How the tool stops."""


class NotUnderstoodError(Exception):
    """The release declares something in a way that this tool was not taught."""
