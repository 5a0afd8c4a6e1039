"""Keep secret values out of everything an operator is shown.

Three nets: the values that are known, however they are written, whatever has a telling name in front, and what tells
of itself by its first letters. Where the text leaves open how far a value goes, too much is hidden rather than too
little.
"""

import re
from collections.abc import Callable, Iterable, Iterator
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
_HARMLESS = re.compile(r"|/.*|\$.*|[0-9.]+|true|false|yes|no|none|null", re.IGNORECASE)
_PLACES = frozenset({"file", "path", "dir", "directory"})  # where a secret is, is none

# Values that tell of themselves, as their issuers document them: model hubs, code hosts, clouds, web tokens. A word
# such as hf_transfer is shorter, and is none.
_LETTERS = "[A-Za-z0-9]"
_LINKED = "[A-Za-z0-9_-]"
_ISSUED = re.compile(
    rf"""
    (?:
        sk[_-](?:ant|proj|live|svcacct|admin)[_-]{_LINKED}{{16,}}
        | sk-(?:[a-z0-9]{{1,8}}-){{0,2}}{_LETTERS}{{16,}}{_LINKED}*
        | (?:hf|gh[a-z])_{_LETTERS}{{16,}}{_LINKED}*
        | github_pat_[A-Za-z0-9_]{{16,}} | glpat-{_LINKED}{{16,}}
        | xox[a-z](?:\.xox[a-z])?-{_LINKED}{{16,}}
        | A(?:KIA|SIA)[A-Z0-9]{{16,}}
        | AIza{_LINKED}{{16,}}
        | nvapi-{_LINKED}{{16,}}
        | eyJ{_LINKED}{{8,}}\.{_LINKED}{{8,}}\.{_LINKED}{{8,}}
    )
    """,
    re.VERBOSE,
)
_BEGINNINGS = ("sk-", "sk_", "hf_", "gh", "glpat-", "xox", "AKIA", "ASIA", "AIza", "nvapi-", "eyJ")
# The end of a longer word is no beginning; an escape, such as \n within quotes, belongs to no word.
_AT_A_WORD = re.compile(r"(?:\A|[^A-Za-z0-9]|\\[abfnrtv]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})\Z")

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
_STRUCTURED = r"""(?P<quote>\\*["'])[^\n]*?(?<!\\)(?P=quote)(?=\s*[,}\]]|[ \t\r]*(?:\n|\Z))
    | \[(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[^]"'])*+[^\n]*
    | \{(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[^}"'])*+[^\n]*
    | ["'\\][^\n]*
"""
_JSON_VALUE = re.compile(rf"{_STRUCTURED} | [^\s,}}\]]+", re.VERBOSE)
# {password: such as this, b: 2}: up to the comma, or to what closes the mapping.
_IN_BRACES = re.compile(
    rf"{_STRUCTURED} | [^\s,}}\]#][^\n]*?(?=[}}\]]*[ \t\r␍]*(?:,\s|,?\s*\Z|,?\n)|[}}\]]+[ \t]+\#)",
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
    text = _without(_URL.sub(f"{MASK}@", text), _named)
    return _without(_URL_WITH_ODD_PASSWORD.sub(f"{MASK}@", text), _issued)


def looks_secret(text: str) -> bool:
    """Whether a text holds what is a secret by its form alone: `hf_…`, `sk-…`, `AKIA…`, a web token."""
    return next(_issued(text), None) is not None


def holds_secret(text: str) -> bool:
    """Whether a text holds a secret in clear, by its form or by the name before it.

    What only says where a secret is, is none: a path, a variable. Nor are numbers, and `true` and the like.
    """
    return looks_secret(text) or any(not is_harmless(text[start:end]) for start, end in _named(text, bearers=False))


def is_harmless(value: str) -> bool:
    """Whether a value tells nothing, though its name is a secret's: a path, a variable, a number, a switch, nothing."""
    return _HARMLESS.fullmatch(value.strip().strip("\"'\\")) is not None


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


def _without(text: str, places: Callable[[str], Iterator[tuple[int, int]]]) -> str:
    kept: list[str] = []
    shown = 0
    for start, end in places(text):
        kept += [text[shown:start], MASK]
        shown = end
    return "".join([*kept, text[shown:]])


def _named(text: str, *, bearers: bool = True) -> Iterator[tuple[int, int]]:
    """Where the values are that have a telling name in front; `bearers`: also whatever follows that mere word."""
    at = 0
    while head := _HEAD.search(text, at):
        at = head.end()
        if (head["bearer"] and not bearers) or not _tells(head, text):
            continue
        value = _value_after(head, text).match(text, at)
        if value and value.end() > at:
            yield at, value.end()
            at = value.end()


def _issued(text: str) -> Iterator[tuple[int, int]]:
    """Where the values are that tell of themselves."""
    if any(beginning in text for beginning in _BEGINNINGS):
        for found in _ISSUED.finditer(text):
            if _AT_A_WORD.search(text, max(found.start() - 6, 0), found.start()):
                yield found.span()


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
    if not whole_line and any(before.count(opening) > before.count(closing) for opening, closing in ("{}", "[]")):
        return _IN_BRACES
    return _WORD_AND_REST if whole_line else _WORD


@cache
def _until(quote: str) -> re.Pattern[str]:
    """What stands in quotes that are open already, up to the closing one, and what is glued to that."""
    inside = {'"': r'(?:[^"\\]|\\.)*+', "'": r"(?:[^'\\]|\\[^'])*+"}.get(quote, r"[^\n]*?(?<!\\)")
    closing = re.escape(quote)
    pattern = rf"{inside}(?={closing}(?:[ \t\r␍\n]|\Z))|{inside}{closing}{_PIECES}|{_REST}"
    return re.compile(pattern, re.VERBOSE | re.DOTALL)
