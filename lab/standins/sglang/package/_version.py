"""What the wheel says it is: the build replaces this file."""

__version__ = "0"
MARKER = ""
