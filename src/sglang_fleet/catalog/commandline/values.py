"""What the words of one option mean: the value for YAML, and the value inside SGLang."""

import json
from dataclasses import dataclass

from sglang_fleet.catalog import Argument
from sglang_fleet.catalog.commandline.readers import WrongValueError, read_word
from sglang_fleet.catalog.commandline.words import Option
from sglang_fleet.masking import is_sensitive


@dataclass(frozen=True, slots=True)
class Value:
    """Words that SGLang takes."""

    written: object
    """As YAML holds it."""
    parsed: object
    """As SGLang holds it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Words that SGLang does not take."""

    sentence: str


def take(option: Option, *, version: str) -> Value | Refused:
    """The value an option gives its argument in this release."""
    argument = option.argument
    if argument.refused is not None:
        return Refused(argument.check(option.name, value=True) or f"`{option.name}` is refused by SGLang")
    if argument.kind in ("flag", "switch"):
        return _take_switch(option)
    return _take_words(option, version)


def parsed_default(argument: Argument, *, version: str) -> object:
    """The default as SGLang holds it: argparse reads one that is text as if it stood on the command line."""
    default = argument.default
    is_read = isinstance(default, str) and argument.kind not in ("flag", "switch")
    return read_word(argument, str(default), version=version) if is_read else default


def _take_switch(option: Option) -> Value | Refused:
    if option.is_attached:
        return Refused(f"`{option.name}` takes no value")
    if option.argument.kind == "flag":
        has_effect = option.argument.const is not None
        return Value(written=True, parsed=option.argument.const if has_effect else option.argument.default)
    is_on = not option.name.startswith("--no-")
    return Value(is_on, is_on)


def _take_words(option: Option, version: str) -> Value | Refused:
    argument = option.argument
    if not option.words and argument.nargs not in ("?", "*"):
        expected = "at least one value" if argument.nargs == "+" else "a value"
        return Refused(f"`{option.name}` expects {expected}, got none")
    try:
        items = [_item(option, word, version) for word in option.words]
    except WrongValueError as wrong:
        return Refused(f"`{option.name}` {wrong}")
    if argument.nargs in ("*", "+"):
        return Value([item.written for item in items], [item.parsed for item in items])
    if argument.nargs == "?":
        return items[0] if items else Value(written=True, parsed=argument.const)
    return items[0] if argument.const is None else Value(items[0].written, argument.const)


def _item(option: Option, word: str, version: str) -> Value:
    argument = option.argument
    try:
        parsed = read_word(argument, word, version=version)
    except WrongValueError:
        raise
    except (ValueError, ArithmeticError, TypeError, RecursionError):
        raise WrongValueError(_expected(option, word)) from None
    if argument.choices is not None and parsed not in argument.choices:
        raise WrongValueError(_expected(option, word))
    return Value(_written(argument, word, parsed), parsed)


def _expected(option: Option, word: str) -> str:
    """What the catalogue says about a word, which is not shown where it may be a secret."""
    if is_sensitive(option.name):
        return "has a value that SGLang does not take"
    sentence = option.argument.check(option.name, word) or f"`{option.name}` does not take {word!r}"
    return sentence.removeprefix(f"`{option.name}`").removeprefix(":").strip()


def _written(argument: Argument, word: str, parsed: object) -> object:
    """The plainest value that becomes the same again on a command line."""
    if isinstance(parsed, dict | list):
        return parsed if _comes_back(argument, parsed) else word
    if argument.kind in ("int", "float") or (argument.kind == "size" and word.strip("+- ").isdecimal()):
        return parsed
    return word


def _comes_back(argument: Argument, parsed: object) -> bool:
    try:
        return argument.check(argument.flag, parsed) is None and json.loads(json.dumps(parsed)) == parsed
    except ValueError:
        return False
