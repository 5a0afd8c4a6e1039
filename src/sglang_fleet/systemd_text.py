"""Values written so that systemd reads back exactly what was meant.

Sources: systemd.service(5) "Command lines", systemd.syntax(7) "Quoting", systemd.unit(5) "Specifiers",
systemd.exec(5) "EnvironmentFile=".
"""

import re

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_@+=:,./^%$-]+\Z")
_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}
_ENVIRONMENT_SPECIALS = re.compile(r'(["\\`$])')


def exec_word(word: str) -> str:
    """One argument of an ExecStart= line.

    `%` would start a specifier and `$` a variable, inside quotes too, so both are doubled.

    Raises:
        ValueError: the word holds a NUL, which no argument of a process can.
    """
    if "\0" in word:
        raise ValueError("an argument cannot hold a NUL character")
    doubled = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN_WORD.match(word):
        return doubled
    return '"' + "".join(_escape(character) for character in doubled) + '"'


def unit_value(text: str) -> str:
    """A one-line setting that systemd expands specifiers in, such as Description=.

    Raises:
        ValueError: the text has more than one line.
    """
    if "\n" in text or "\r" in text or "\0" in text:
        raise ValueError("a unit's setting is one line")
    return text.replace("%", "%%").rstrip("\\").strip()


def path_word(path: str) -> str:
    """One path of a setting that takes a list of paths, such as ReadWritePaths=."""
    doubled = path.replace("%", "%%")
    if _PLAIN_WORD.match(path):
        return doubled
    return '"' + "".join(_escape(character) for character in doubled) + '"'


def environment_line(name: str, value: str) -> str:
    r"""One line of a file that EnvironmentFile= reads.

    Inside double quotes systemd gives `"`, `\`, `` ` `` and `$` their plain meaning back when a backslash
    stands before them, and keeps every other character, line ends included.

    Raises:
        ValueError: the value holds a NUL, or the name is not a variable's name.
    """
    if "\0" in value:
        raise ValueError(f"{name} cannot hold a NUL character")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"{name!r} is not the name of an environment variable")
    if re.fullmatch(r"[A-Za-z0-9_@%+=:,./-]+", value):
        return f"{name}={value}"
    return f'{name}="' + _ENVIRONMENT_SPECIALS.sub(r"\\\1", value) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if ord(character) < 0x20 or ord(character) == 0x7F:  # noqa: PLR2004 - ASCII control characters
        return f"\\x{ord(character):02x}"
    return character
