"""What every reader of hand-written starts shares: words with their lines, notes, and the start that was found."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

UNKNOWN = "\0"
"""Stands on both sides of a piece of text whose value only the host knows; no word of a process can hold it."""
SEVERAL = "\1"
"""Stands at the end of such a piece that a shell would split: it may be one word, none or several."""
_SHIELD = 0x100000
"""The first of the characters for private use that stand for those of an unknown piece while other readers see it."""


def is_wholly_unknown(text: str) -> bool:
    """Whether a word consists of pieces whose values only the host knows."""
    return re.fullmatch(f"({UNKNOWN}[^{UNKNOWN}]*{UNKNOWN})+", text) is not None


class UnreadableError(Exception):
    """The text cannot be understood. The message never holds a value: it may be a secret."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line, self.message = line, message


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command line, and the line of the source that it starts on."""

    text: str
    line: int

    @property
    def is_known(self) -> bool:
        """Whether the whole text is known without asking the host."""
        return UNKNOWN not in self.text


def plain(text: str) -> str:
    """A text with its unknown pieces as they were written."""
    return unshielded(text).replace(SEVERAL + UNKNOWN, "").replace(UNKNOWN, "")


def unknown(written: str) -> str:
    """A piece of text whose value only the host knows, as it was written."""
    return f"{UNKNOWN}{plain(written)}{UNKNOWN}"


def several(written: str) -> str:
    """The same for a piece that may be no word, one or more."""
    return f"{UNKNOWN}{plain(written)}{SEVERAL}{UNKNOWN}"


def shielded(text: str) -> str:
    """A text whose unknown pieces no reader takes apart: without blanks, quotes and signs that mean something."""
    pieces = text.split(UNKNOWN)
    for index in range(1, len(pieces), 2):
        piece = f"{UNKNOWN}{pieces[index]}{UNKNOWN}"
        pieces[index] = "".join(chr(_SHIELD + ord(each)) if each < "\x80" else each for each in piece)
    return "".join(pieces)


def unshielded(text: str) -> str:
    """The text again, with its unknown pieces marked as before."""
    if text.isascii():
        return text
    return "".join(chr(ord(each) - _SHIELD) if _SHIELD <= ord(each) < _SHIELD + 0x80 else each for each in text)


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """What could not be carried over, or not as it was, and where it stands.

    Attributes:
        line: the line of the source.
        text: what is said about it; it ends with a colon where a command follows.
        command: what to type, on one line; empty where there is nothing to type.
    """

    line: int
    text: str
    command: str = ""

    @property
    def whole(self) -> str:
        """The text and the command."""
        return f"{self.text} {self.command}".rstrip()


@dataclass(frozen=True, slots=True)
class Files:
    """The files beside the source, for those that it names.

    Attributes:
        root: what stands for `/` on the host; None when no folder was given.
        folder: where the source lies; None for standard input.
    """

    root: Path | None = None
    folder: Path | None = None

    def read(self, name: str) -> str | None:
        """The text of a file that the source names; None when it is not here or is no text."""
        for path in self._places(name):
            try:
                return path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError, ValueError):
                continue
        return None

    def _places(self, name: str) -> list[Path]:
        bases = [base for base in (self.root, self.folder) if base is not None]
        relative = name.lstrip("/")
        # A unit that was copied together with its files has them beside it, whatever their folder was.
        beside = [self.folder / Path(name).name] if self.folder is not None and Path(name).name else []
        return [base / relative for base in bases] + beside


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a command starts in, as far as it is known. Never changed: each wrapper makes a new one.

    Attributes:
        environment: the variables, by name.
        lines: the line that set each of them.
        directory: the folder it starts in.
        user: the account.
        home: the account's home, where that is certain.
        limits: resource limits by their short names (`nofile`), as systemd writes values.
        gpus: the indices of the GPUs that it may use; None for all.
        volumes: container paths and where they are on the host, of a container.
        container: whether it runs in one.
        reads: the files beside the source.
        ports: what `-p` says, with its line.
        image: the container's image, and its line.
        name: the container's name.
        secrets: values of variables with telling names, also of those that the command does not get.
        trial: whether a branch is only looked into: no start in it counts.
    """

    environment: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    directory: str | None = None
    user: str | None = None
    home: str | None = None
    limits: dict[str, str] = field(default_factory=dict)
    gpus: tuple[int, ...] | None = None
    volumes: tuple[tuple[str, str], ...] = ()
    container: bool = False
    reads: Files = Files()
    ports: tuple[tuple[str, int], ...] = ()
    image: tuple[str, int] = ("", 0)
    name: str = ""
    secrets: frozenset[str] = frozenset()
    trial: bool = False

    def with_variables(self, variables: dict[str, str], line: int) -> Surroundings:
        """The same with more variables."""
        return replace(
            self,
            environment=self.environment | variables,
            lines=self.lines | dict.fromkeys(variables, line),
        )


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of SGLang.

    Attributes:
        words: SGLang's own arguments: what follows `-m sglang.launch_server`.
        line: where the command starts.
        around: what it starts in.
        name: the service's name, where the source has one.
        description: what the source calls it.
        unit: the file name of the unit that starts it today.
        startup: seconds that it may take to start.
        drain: seconds that running requests may take when it stops.
        program: what runs it: an interpreter, or `sglang` itself; empty when something else stands there.
        exposed: what a rule says of secrets that stand in a unit, a sentence each, with the rule's id.
    """

    words: tuple[Word, ...]
    line: int
    around: Surroundings
    name: str = ""
    description: str = ""
    unit: str = ""
    startup: float | None = None
    drain: float | None = None
    program: str = ""
    exposed: tuple[str, ...] = ()

    def unshielded(self) -> Launch:
        """The same with its unknown pieces marked again, where another reader saw them shielded."""
        around = replace(
            self.around,
            environment={unshielded(name): unshielded(value) for name, value in self.around.environment.items()},
            directory=None if self.around.directory is None else unshielded(self.around.directory),
            user=None if self.around.user is None else unshielded(self.around.user),
            image=(unshielded(self.around.image[0]), self.around.image[1]),
            name=unshielded(self.around.name),
        )
        return replace(
            self,
            words=tuple(Word(unshielded(word.text), word.line) for word in self.words),
            around=around,
            name=unshielded(self.name),
            description=unshielded(self.description),
        )


class Notes:
    """The notes of one import, each once."""

    def __init__(self) -> None:
        self._found: dict[Note, None] = {}

    def add(self, line: int, text: str, *, command: str = "") -> None:
        """Add one."""
        self._found[Note(line, plain(text), command)] = None

    def all(self) -> list[Note]:
        """All of them, by line; those of one line in the order they were found."""
        return sorted(self._found, key=lambda note: note.line)
