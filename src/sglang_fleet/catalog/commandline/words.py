"""Take a command line apart into options with their words. No value is looked at here."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sglang_fleet.catalog import Argument, Catalogue

_HELP = "help"
_AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True)
class Option:
    """An option the release has, and the words it takes."""

    name: str
    """Its full name, also where the command line has it shortened."""
    argument: Argument
    words: tuple[str, ...]
    is_attached: bool
    """The word was given as `--name=word`."""


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """A shortened option that may be any of several."""

    name: str
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Help:
    """SGLang prints its help here and ends."""

    name: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """An option the release does not have, and the words after it."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeftOver:
    """Words that belong to no option."""

    words: tuple[str, ...]
    after: str | None
    """The option before them."""


Entry = Option | Ambiguous | Help | Unknown | LeftOver


class _Word(str):
    """A word of the command line that knows its place; argparse hands it on as it is."""

    __slots__ = ("at",)

    def __new__(cls, text: str, at: int) -> Self:
        word = super().__new__(cls, text)
        word.at = at
        return word

    at: int


class _Take(argparse.Action):
    """Notes an option and its words."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse passes it
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        namespace.taken.append((self.dest, option_string, values))


class WordParser(argparse.ArgumentParser):
    """SGLang's parser as far as it tells words apart.

    Every option takes as many words as there are, so that nothing ends the parsing early; what is too many for an
    option is given back.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        super().__init__(add_help=False, exit_on_error=False)
        self._arguments: dict[str, Argument] = {}
        self._note(["-h", "--help"], destination=_HELP)
        self._ambiguous = _Take([], _AMBIGUOUS, nargs="*")
        for argument in catalogue.arguments:
            names = [argument.flag, *argument.aliases]
            if argument.kind == "switch":
                names = [spelling for name in names for spelling in (name, f"--no-{name.removeprefix('--')}")]
            self._note(names, destination=argument.flag)
            self._arguments |= dict.fromkeys(names, argument)

    def _note(self, names: list[str], *, destination: str) -> None:
        self.add_argument(*names, dest=destination, action=_Take, nargs="*", default=argparse.SUPPRESS)

    def take_apart(self, words: Sequence[str]) -> Iterator[Entry]:
        """All words, in order."""
        taken: list[tuple[str, str, list[str]]] = []
        _, extras = self.parse_known_args(
            [_Word(word, at) for at, word in enumerate(words)], argparse.Namespace(taken=taken)
        )
        return _joined(self._in_order(taken, {word.at: word for word in extras if isinstance(word, _Word)}))

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """What a shortened option may mean. Where that is several things, argparse would end the parsing."""
        found: list[Any] = super()._get_option_tuples(option_string)
        if len(found) <= 1:
            return found
        _, _, *value = found[0]
        return [(self._ambiguous, option_string, *value)]

    def _in_order(self, taken: list[tuple[str, str, list[str]]], strays: dict[int, _Word]) -> Iterator[Entry | _Word]:
        """The entries, and between them the words that no option took."""
        at = 0
        for destination, name, values in taken:
            while at in strays:
                yield strays.pop(at)
                at += 1
            own = [word for word in values if isinstance(word, _Word)]
            at += 1 + len(own)
            if destination == _AMBIGUOUS:
                name = name.partition("=")[0]  # noqa: PLW2901 - the rest is its word
                yield Ambiguous(
                    name, tuple(option for option in self._option_string_actions if option.startswith(name))
                )
            elif destination == _HELP:
                yield Help(name)
            else:
                argument = self._arguments[name]
                words = own[: _most(argument)] if own else values
                yield Option(name, argument, tuple(map(str, words)), is_attached=bool(values) and not own)
                yield from own[len(words) :]
        yield from strays.values()


def _most(argument: Argument) -> int | None:
    """How many words an argument takes at most; None when there is no limit."""
    if argument.kind in ("flag", "switch"):
        return 0
    return None if argument.nargs in ("*", "+") else 1


def _joined(entries: Iterable[Entry | _Word]) -> Iterator[Entry]:
    """Join the words that no option took: an unknown option with those after it, or left-over ones."""
    after: str | None = None
    words: list[str] = []
    is_unknown = only_words_follow = False

    def end() -> Iterator[Entry]:
        if words:
            yield Unknown(tuple(words)) if is_unknown else LeftOver(tuple(words), after)
            words.clear()

    for entry in entries:
        if not isinstance(entry, _Word):
            yield from end()
            yield entry
            after = getattr(entry, "name", after)
            continue
        begins_unknown = not only_words_follow and _looks_like_option(entry)
        if begins_unknown or entry == "--" or not words:
            yield from end()
            is_unknown = begins_unknown
        only_words_follow = only_words_follow or entry == "--"
        words.append(str(entry))
    yield from end()


def _looks_like_option(word: str) -> bool:
    if not word.startswith("--"):
        try:
            float(word)
        except ValueError:
            pass
        else:
            return False
    return word.startswith("-") and word not in ("-", "--") and " " not in word
