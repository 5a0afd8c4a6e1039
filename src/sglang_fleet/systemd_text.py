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
_NONCHARACTER = re.compile(
    "[\ufdd0-\ufdef"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))
    + "]"
)
"""Unicode's 66 noncharacters: systemd takes a text that holds one for no UTF-8 (utf8.c, unichar_is_valid)."""


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


def path_value(path: str) -> str:
    """The path of a setting that takes a single one as it stands, quotes and all, such as WorkingDirectory=.

    A space or a backslash at the end would be lost, so that a `/` follows it.
    """
    doubled = path.replace("%", "%%")
    return f"{doubled}/" if path.endswith((" ", "\\")) else doubled


def path_word(path: str) -> str:
    """One path of a setting that takes a list of paths, such as ReadWritePaths=."""
    doubled = path.replace("%", "%%")
    if _PLAIN_WORD.match(path):
        return doubled
    return '"' + "".join(_escape(character) for character in doubled) + '"'


def is_environment_value(text: str) -> bool:
    """Whether systemd reads a variable's value; one that holds NUL or a noncharacter it drops, with the variable."""
    return "\0" not in text and not _NONCHARACTER.search(text) and _is_unicode(text)


def environment_line(name: str, value: str) -> str:
    r"""One line of a file that EnvironmentFile= reads.

    Inside double quotes systemd gives `"`, `\`, `` ` `` and `$` their plain meaning back when a backslash
    stands before them, and keeps every other character, line ends included.

    Raises:
        ValueError: the value is none that systemd reads, or the name is not a variable's name.
    """
    if not is_environment_value(value):
        raise ValueError(f"{name} holds a character that systemd does not read in an environment file")
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
    if _NONCHARACTER.match(character):
        return "".join(f"\\x{byte:02x}" for byte in character.encode())
    return character


def _is_unicode(text: str) -> bool:
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)  # noqa: PLR2004 - surrogates
