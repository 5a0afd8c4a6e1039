"""Keep secret values out of everything an operator is shown.

Two nets: the values that are known, however they are written, and whatever has a telling name in front. Where the
text leaves open how far a value goes, too much is hidden rather than too little.
"""

import re
from collections.abc import Iterable
from functools import cache

from sglang_fleet.host.written import written_forms

MASK = "•••"
_SHORTEST = 4  # masking every "1" of a text would hide nothing but the text

# Names. Words are what `_` and `-` separate: a word that ends so tells of a secret, wherever it stands.
_TELLING = re.compile(
    r"(?:secret|password|passwd|passphrase|pwd|credential|cred|token|key)s?$|(?<!by)(?<!com)pass$|^authorization$"
)
# Counts and the like: SGLang's own arguments, its log, and what models' configurations hold.
_MEASURES = frozenset({"max", "min", "num", "ratio", "map", "threshold", "buckets", "graph"})
_HARMLESS_WITH = {
    "token": _MEASURES | {"per", "time", "usage", "latency", "bos", "eos", "pad", "unk"},
    "tokens": _MEASURES | {"prompt", "completion", "cached", "reserved"},
    "key": frozenset({"num"}),  # num_key_value_heads
    "pass": frozenset({"forward"}),
}
_OTHERS = frozenset({"watermark_config"})  # its JSON may hold keys: SGLang 0.5.23 hides it too, in ServerArgs' repr
_PLACES = frozenset({"file", "path", "dir", "directory"})  # where a secret is, is none

# Text. `readable` shows a carriage return as ␍.
_BLANK = r"[ \t\r␍]"
_CONTINUED = rf"\\{_BLANK}*\n"
_GAP = rf"(?:{_BLANK}|{_CONTINUED}(?:[ \t]*[#;][^\n]*\n)*)"
_REST = rf"(?:{_CONTINUED}|[^\n])*"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_-]*"
_QUOTE = r"""(?<!\\)\\*+["']"""  # escaped ones are quotes too, within quotes
# A word as systemd or a shell reads it. They differ about \' within ', which hides the rest of the line for that.
_PIECES = rf"""(?:
    (?P<escaped>\\+["'])[^\n]*?(?<!\\)(?P=escaped)
    | "(?:[^"\\\n]|{_CONTINUED}|\\.)*"
    | '(?:[^'\\\n]|{_CONTINUED}|\\[^'\n])*'
    | ["']{_REST}
    | \\[^\n]
    | [^ \t\r\n"'\\]
)*"""
_LINES_IN_QUOTES = r"""(?: "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\[^'])*' )"""
_WORD = re.compile(rf"(?:{_LINES_IN_QUOTES})?{_PIECES}", re.VERBOSE | re.DOTALL)
_WORD_AND_REST = re.compile(rf"(?:{_LINES_IN_QUOTES})?{_REST}", re.VERBOSE | re.DOTALL)
_JSON_VALUE = re.compile(
    r"""(?P<quote>\\*["'])[^\n]*?(?<!\\)(?P=quote)(?=\s*[,}\]]|[ \t\r]*(?:\n|\Z))
    | \[(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[^]"'])*+[^\n]*
    | \{(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[^}"'])*+[^\n]*
    | ["'\\][^\n]* | [^\s,}\]]+""",
    re.VERBOSE,
)
# What may stand before a value, the leftmost first, so that nothing within a value is taken for a name.
_HEAD = re.compile(
    rf"""
    (?P<key_quote>{_QUOTE})(?P<key>{_NAME})(?P=key_quote)\s*:\s*                    # "api_key": as in JSON
    | (?P<quote>{_QUOTE})(?P<quoted>(?:--)?{_NAME})[ \t]*[=:]                       # "API_KEY= "--api-key= "X-Key:
    | (?<![\w-])(?P<flag>--{_NAME})(?:=|{_GAP}++(?!--))                             # --api-key
    | (?<![A-Za-z0-9_-])(?P<name>{_NAME})[ \t]*(?:=(?P<assigned>){_GAP}*+|:{_GAP}*+\s*)  # API_KEY=  api_key:
    | (?<![A-Za-z0-9_-])(?P<bearer>bearer)[ \t]+
    """,
    re.VERBOSE | re.IGNORECASE,
)
_COUNTED_IN_LOG = re.compile(r"#(?:[a-z]+ )?[a-z-]*tokens?: \d+(?![^\s,])")  # SGLang's `#new-token: 7, …`
_URL = re.compile(r"""(?<=\w://)(?:[^\s/@:"']*:[^\s"']*|[^\s/@"']+)@""")
_URL_WITH_ODD_PASSWORD = re.compile(r"(?<=\w://)[^\s/@:]*:[^ \t\r\n]*@")


def mask(text: str, values: Iterable[str] = ()) -> str:
    """The text with every known secret, and everything that looks like one, replaced.

    Args:
        text: what is about to be shown.
        values: secret values that are known; each is hidden wherever it stands, also escaped or encoded.
    """
    known = {form for value in set(values) if len(value) >= _SHORTEST for form in _forms(value)}
    for form in sorted(known, key=len, reverse=True):
        text = text.replace(form, MASK)
    text = _hide_named(_URL.sub(f"{MASK}@", text))
    return _URL_WITH_ODD_PASSWORD.sub(f"{MASK}@", text)


def is_sensitive(name: str) -> bool:
    """Whether what has this name (`HF_TOKEN`, `--api-key`, `Authorization`) is a secret."""
    words = [word for word in re.split(r"[_-]+", name.lower()) if word]
    if not words or words[-1] in _PLACES:
        return False
    if words[-1] == "auth" or "_".join(words) in _OTHERS:
        return True
    return any(_TELLING.search(word) and _HARMLESS_WITH.get(word, frozenset()).isdisjoint(words) for word in words)


@cache
def _forms(value: str) -> frozenset[str]:
    return frozenset(written_forms(value))


def _hide_named(text: str) -> str:
    kept: list[str] = []
    shown = at = 0
    while head := _HEAD.search(text, at):
        at = head.end()
        if not _tells(head, text):
            continue
        value = _value_after(head, text).match(text, at)
        if value and value.end() > at:
            kept += [text[shown:at], MASK]
            shown = at = value.end()
    return "".join([*kept, text[shown:]])


def _tells(head: re.Match[str], text: str) -> bool:
    if head["bearer"]:
        return True
    if head["name"]:
        line = max(text.rfind("\n", 0, head.start()), text.rfind("#", 0, head.start()))
        if line >= 0 and _COUNTED_IN_LOG.match(text, line):
            return False
    return is_sensitive(head["key"] or head["quoted"] or head["flag"] or head["name"])


def _value_after(head: re.Match[str], text: str) -> re.Pattern[str]:
    """What the value may be, by what stands before it."""
    if head["key"]:
        return _JSON_VALUE
    if head["quoted"]:
        return _until(head["quote"])
    if not head["name"]:
        return _WORD
    before = text[text.rfind("\n", 0, head.start()) + 1 : head.start()]
    if head["assigned"] is not None:  # a whole line of an environment file, or of a unit, is the value
        continues = re.search(rf"{_CONTINUED}\Z", text[: head.start() - len(before)])
        return _WORD_AND_REST if not before.strip("#;") and not continues else _WORD
    whole_line = not before.strip("- \t") or head["name"].lower().endswith("authorization")
    return _WORD_AND_REST if whole_line else _WORD


@cache
def _until(quote: str) -> re.Pattern[str]:
    """What stands in quotes that are open already, up to the closing one, and what is glued to that."""
    inside = {'"': r'(?:[^"\\]|\\.)*+', "'": r"(?:[^'\\]|\\[^'])*+"}.get(quote, r"[^\n]*?(?<!\\)")
    closing = re.escape(quote)
    pattern = rf"{inside}(?={closing}(?:[ \t\r␍\n]|\Z))|{inside}{closing}{_PIECES}|{_REST}"
    return re.compile(pattern, re.VERBOSE | re.DOTALL)
