"""The ways in which a secret value may be written: by a shell, JSON, Python, a URL, base64 or systemd.

The controller's masking uses this too: what one of them hides, the other hides.
"""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

# As systemd_text.exec_word and environment_line write them; the tests compare.
_C_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_C_ESCAPES.update({"\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"})


def written_forms(value: str) -> set[str]:
    """Return the value and every other way to write it, each without the quotes around it."""
    content = value.encode("utf-8", "surrogatepass")
    texts = {value, *_json_forms(value)}
    texts |= {repr(value)[1:-1], repr(value + "'")[1:-2], repr(value + "'\"")[1:-4]}
    forms = set(texts)
    for text in texts:
        doubled = text.replace("%", "%%").replace("$", "$$")
        # Of the escapes a reader takes, writers use some: ours all, most people only those for quotes.
        forms |= {doubled, _in_quotes(text), _in_quotes(doubled), _exec_word(doubled)}
        forms |= {_escaped(text, '\\"`$'), text.replace("'", "'\"'\"'"), text.replace("'", "'\\''")}
    forms |= {quote(content, safe=""), quote(content), quote_plus(content)}
    # The padding goes: with it, a form would miss the value in a text that leaves it out.
    forms |= {encode(content).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)}
    return forms


def _json_forms(value: str) -> set[str]:
    """In JSON, and as YAML wants it: DEL escaped, characters beyond U+FFFF not."""
    escaped, plain = (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    characters = (json.dumps(character, ensure_ascii=character <= "\uffff")[1:-1] for character in value)
    return {escaped, plain, "".join(characters).replace("\x7f", "\\u007f"), escaped.replace("/", "\\/")}


def _escaped(text: str, specials: str) -> str:
    return "".join(f"\\{character}" if character in specials else character for character in text)


def _in_quotes(text: str) -> str:
    return _escaped(text, '\\"')


def _exec_word(doubled: str) -> str:
    return "".join(_exec_character(character) for character in doubled)


def _exec_character(character: str) -> str:
    if character in _C_ESCAPES:
        return _C_ESCAPES[character]
    code = ord(character)
    if code < 0x20 or code == 0x7F:  # noqa: PLR2004 - ASCII control characters
        return f"\\x{code:02x}"
    if 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE:  # noqa: PLR2004 - Unicode's noncharacters
        return "".join(f"\\x{byte:02x}" for byte in character.encode())
    return character
