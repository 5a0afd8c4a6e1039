"""Read a command line of SGLang as its own parser would, against one release's catalogue.

    line = read(["--model", "/models/k26", "--tp=8"], catalogue("0.5.23"))
    line.given          # model_path "/models/k26", tp_size 8
    line.problems       # () where SGLang's parser would accept it

The words are taken apart by Python's argparse, as SGLang's are: abbreviations, `=`, negative numbers and `--` mean
what they mean there. `tests/real` holds this reader against the real parser. What SGLang checks after parsing (against
the model, the GPU, or one argument against another) is not checked here, and a `--config` file is not read.

One oddity is not repeated: up to Python 3.12 `--name=--` quietly becomes an empty list; here it is a missing value.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache

from sglang_fleet.catalog import Argument, Catalogue
from sglang_fleet.catalog.commandline.values import Refused, parsed_default, take
from sglang_fleet.catalog.commandline.words import Ambiguous, Help, LeftOver, Option, Unknown, WordParser
from sglang_fleet.masking import MASK, is_sensitive

__all__ = ["CommandLine", "Given", "read"]


@dataclass(frozen=True, slots=True)
class Given:
    """An argument that stands on the command line, with a value SGLang takes."""

    argument: Argument
    value: object
    """What a YAML key would hold: true for a flag, false for `--no-…`, else a number, text, list or mapping."""
    parsed: object
    """What SGLang makes of it: 8000 where `value` is the text `8k`."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line, read."""

    catalogue: Catalogue
    given: tuple[Given, ...]
    """In the order they stand; where one is repeated, the last counts."""
    problems: tuple[str, ...]
    """A sentence for everything that SGLang's parser would refuse, in the order of the words.

    None of them shows the value of an argument whose name tells of a secret.
    """
    unknown: tuple[tuple[str, ...], ...]
    """Each option that the release does not have, with the words after it. These may hold secrets."""

    def namespace(self) -> dict[str, object]:
        """Every destination with its value or default, as the release's own parser gives it.

        Where there are problems SGLang would end; what they are about has its default here.
        """
        given = {given.argument.destination: given.parsed for given in self.given}
        return deepcopy(_defaults(self.catalogue)) | given


def read(words: Sequence[str], catalogue: Catalogue) -> CommandLine:
    """Read the words that follow `python -m sglang.launch_server` or `sglang serve`."""
    given: list[Given] = []
    problems: list[str] = []
    unknown: list[tuple[str, ...]] = []
    missing = {argument.flag for argument in catalogue.arguments if argument.required}
    for entry in _parser(catalogue).take_apart(words):
        match entry:
            case Option(argument=argument):
                missing.discard(argument.flag)
                value = take(entry, version=catalogue.version)
                if isinstance(value, Refused):
                    problems.append(value.sentence)
                else:
                    given.append(Given(argument, value.written, value.parsed))
            case Unknown():
                unknown.append(entry.words)
                problems.append(_unknown(entry, catalogue))
            case Ambiguous():
                problems.append(f"`{entry.name}` may mean any of {', '.join(entry.candidates)}")
            case Help():
                problems.append(f"`{entry.name}` makes SGLang print its help and end")
            case LeftOver():
                problems.append(_left_over(entry))
    problems += [f"`{flag}` is required" for flag in sorted(missing)]
    return CommandLine(catalogue, tuple(given), tuple(problems), tuple(unknown))


@lru_cache(maxsize=4)
def _defaults(catalogue: Catalogue) -> dict[str, object]:
    values: dict[str, object] = {}
    for argument in catalogue.arguments:
        values.setdefault(argument.destination, parsed_default(argument, version=catalogue.version))
    return values


@lru_cache(maxsize=4)
def _parser(catalogue: Catalogue) -> WordParser:
    return WordParser(catalogue)


def _unknown(entry: Unknown, catalogue: Catalogue) -> str:
    name = entry.words[0].partition("=")[0]
    # The catalogue takes an underscore for a hyphen, SGLang does not.
    return catalogue.check(name, value=None) or f"`{name}`: no such argument in SGLang {catalogue.version}"


def _left_over(entry: LeftOver) -> str:
    place = f"after `{entry.after}`" if entry.after else "at the beginning"
    words = MASK if entry.after and is_sensitive(entry.after) else " ".join(map(repr, entry.words))
    return f"{words} {place} belongs to no argument"
