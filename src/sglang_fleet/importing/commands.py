"""Find the start of SGLang in a command, behind what stands in front of it: env, bash -c, docker run, numactl, uv."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sglang_fleet.importing import containers, unit
from sglang_fleet.importing.basis import UNKNOWN, Launch, Notes, Surroundings, Word, plain, shielded
from sglang_fleet.importing.engines import engine_of, engine_of_image
from sglang_fleet.importing.releases import Pin, required
from sglang_fleet.importing.shell import run
from sglang_fleet.importing.wrappers import env, sudo
from sglang_fleet.masking import is_sensitive

if TYPE_CHECKING:
    from collections.abc import Sequence

_MODULES = ("sglang.launch_server", "sglang.srt.entrypoints.http_server")
_SHELLS = ("bash", "sh", "dash", "zsh", "ash")
_ENVIRONMENTS = ("uv", "uvx", "conda", "mamba", "micromamba", "poetry", "pixi", "pipenv", "hatch", "rye")
_TRANSPARENT = frozenset(
    """
    & -- catchsegv command coproc dumb-init eval exec nohup screen setsid stdbuf systemd-cat time tini tmux unbuffer
    """.split()  # noqa: SIM905 - a paragraph reads better than a column
)
_NO_START = frozenset(
    """
    awk cat curl echo egrep export find git grep kill killall ls pgrep pip pip3 pkill printf ps sed tail tee wget
    """.split()  # noqa: SIM905 - a paragraph reads better than a column
)
_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_STARTS = re.compile(r"-m\s*sglang\.launch_server|\bsglang\s+serve\b|launch_server\.py|-m\s*sglang\.srt\.entrypoints")
_DEEPEST = 20


class Finder:
    """Collects the starts of SGLang; `command` is the handler of a shell.

    Attributes:
        launches: what was found.
        seen: programs that were met instead, with their lines: what to say when nothing was found.
        engines: other servers that are known by name, with their lines.
        installed: what commands say about the release.
        secrets: values of variables with telling names.
    """

    def __init__(self, notes: Notes, *, depth: int = 0) -> None:
        self.notes, self.depth = notes, depth
        self.launches: list[Launch] = []
        self.seen: list[tuple[str, int]] = []
        self.engines: list[tuple[str, int]] = []
        self.installed: list[Pin] = []
        self.secrets: set[str] = set()

    def command(self, words: list[Word], around: Surroundings) -> bool:
        """Whether the command starts SGLang; if so the start is kept, unless it was a trial."""
        if not words or self.depth > _DEEPEST:
            return False
        scratch = Finder(Notes() if around.trial else self.notes, depth=self.depth + 1)
        started = scratch._any(list(words), replace(around, trial=False))
        self.seen += scratch.seen
        self.engines += scratch.engines
        self.secrets |= scratch.secrets | around.secrets
        self.secrets |= {value for name, value in around.environment.items() if is_sensitive(name)}
        if not around.trial:
            pins = [(required(plain(word.text)), plain(word.text), word.line) for word in words]
            self.installed += [Pin(release, text, line) for release, text, line in pins if release]
            self.installed += scratch.installed
        if started and not around.trial:
            self.launches += scratch.launches
        return started

    def _any(self, words: list[Word], around: Surroundings) -> bool:
        files: list[str] = []
        if len(words) > 2 and words[-2].text == "<<":  # noqa: PLR2004 - what it reads stands behind its words
            words, body = words[:-2], words[-1]
            files = [word.text for word in words]
            if _STARTS.search(body.text):
                return self._heredoc(words, files, body, around)
        if len(words) > 2 and words[-2].text == ">":  # noqa: PLR2004 - as above
            words = words[:-2]
        return posixpath.basename(words[0].text) not in _NO_START and self._read(words, around)

    def _heredoc(self, words: list[Word], files: list[str], body: Word, around: Surroundings) -> bool:
        """A unit or a script that a script writes, or hands to a shell."""
        lines = "\n" * (body.line - 1)
        before = len(self.launches)
        if unit.is_unit(body.text):
            name = next((posixpath.basename(file) for file in files if file.endswith(".service")), "")
            found = unit.read(
                lines + shielded(body.text),
                unit=plain(name),
                files=around.reads,
                notes=self.notes,
                finder=Finder(self.notes),
            )
            self.launches += [launch.unshielded() for launch in found]
        elif body.text.startswith("#!") or posixpath.basename(words[0].text) not in _NO_START:
            run(lines + shielded(body.text), line=1, around=around, notes=self.notes, handler=self.command)
        return len(self.launches) > before

    def _read(self, words: list[Word], around: Surroundings) -> bool:
        while words:
            at = next((index for index in range(len(words)) if self._matters(words, index)), None)
            if at is None:
                return self._foreign(words, around)
            front, words = words[:at], words[at:]
            self._front(front)
            start = _start(words, 0)
            if start is not None:
                self._started(words, start, around, self._program(front, words))
                return True
            name = posixpath.basename(words[0].text)
            if name in _SHELLS:
                return self._shell(words, around)
            if name in ("su", "runuser") and any(word.text in ("-c", "--command") for word in words):
                return self._su(words, around)
            if _STARTS.search(words[0].text):
                return self._script(words[0].text, words[0].line, around)
            words, around = self._unwrapped(name, words, around)
        return False

    def _matters(self, words: list[Word], at: int) -> bool:
        """Whether a word says more than that something else follows."""
        text = words[at].text
        name = posixpath.basename(text)
        if _start(words, at) is not None or name in ("env", "sudo", "doas", "gosu", "su", "runuser", *_SHELLS):
            return True
        if containers.is_run(words[at:]):
            return True
        return at > 0 and " " in text.strip() and _STARTS.search(text) is not None

    def _unwrapped(self, name: str, words: list[Word], around: Surroundings) -> tuple[list[Word], Surroundings]:
        if name == "env":
            return env(words, around)
        if name in ("sudo", "doas"):
            return sudo(words, around)
        if name in ("gosu", "su", "runuser"):
            user = next((word for word in words[1:] if not word.text.startswith("-")), None)
            at = words.index(user) + 1 if user is not None else len(words)
            return words[at:], replace(around, user=user.text if user is not None else None)
        rest, container = containers.read_run(words, around, self.notes)
        if engine := engine_of_image(container.image[0]):
            self.engines.append((engine, container.image[1]))
            return [], container
        if rest and rest[0].text.startswith("--") and _start(rest, 0) is None:
            rest = [Word("-m", rest[0].line), Word("sglang.launch_server", rest[0].line), *rest]
            self.notes.add(rest[0].line, "the image's own command was taken for python3 -m sglang.launch_server")
        return rest, container

    def _front(self, words: list[Word]) -> None:
        """What stands in front of the start and is not carried over."""
        names = [word for word in words if not word.text.startswith("-") and posixpath.basename(word.text)]
        for word in names[:1] if names and posixpath.basename(names[0].text) not in _TRANSPARENT else names:
            name = posixpath.basename(plain(word.text))
            if name in _ENVIRONMENTS:
                self.notes.add(word.line, f"{name}: the product makes a virtual environment of its own")
                return
            if _PYTHON.fullmatch(name):
                if "/" in word.text:
                    self.notes.add(word.line, f"{plain(word.text)}: the product makes a virtual environment of its own")
                return
            if name not in _TRANSPARENT:
                self.notes.add(word.line, f"{name} in front of the server is not carried over")
                return

    @staticmethod
    def _program(front: list[Word], words: list[Word]) -> str:
        """The interpreter in front of `-m`, or `sglang` itself."""
        pythons = [word.text for word in front if _PYTHON.fullmatch(posixpath.basename(word.text))]
        return plain(pythons[-1] if pythons else words[0].text)

    def _started(self, words: list[Word], start: tuple[int, bool], around: Surroundings, program: str) -> None:
        at, serves = start
        rest = words[at:]
        if serves and rest and not rest[0].text.startswith("-"):
            self.notes.add(rest[0].line, "the model that stands without a flag is written as model_path")
            rest = [Word("--model-path", rest[0].line), *rest]
        if "/" in words[0].text and posixpath.basename(words[0].text) == "sglang":
            self.notes.add(words[0].line, f"{plain(words[0].text)}: the product makes a virtual environment of its own")
        if posixpath.basename(words[0].text) == "launch_server.py":
            self.notes.add(words[0].line, f"{plain(words[0].text)}: SGLang is started as a module of the product's own")
        self.launches.append(Launch(tuple(rest), words[0].line, around, name=around.name, program=program))

    def _shell(self, words: list[Word], around: Surroundings) -> bool:
        at = next((index for index, word in enumerate(words) if re.fullmatch(r"-[a-z]*c[a-z]*", word.text)), None)
        if at is not None and at + 1 < len(words):
            arguments = tuple(word.text for word in words[at + 3 :])
            return self._script(words[at + 1].text, words[at + 1].line, around, arguments=arguments)
        files = [word for word in words[1:] if not word.text.startswith(("-", "+"))]
        return self._file(files, around) if files else False

    def _su(self, words: list[Word], around: Surroundings) -> bool:
        at = next(index for index, word in enumerate(words) if word.text in ("-c", "--command"))
        skipped = {at, at + 1, *(i + 1 for i, word in enumerate(words) if word.text in ("-s", "-g", "-G", "--shell"))}
        users = [
            word.text
            for index, word in enumerate(words)
            if index and index not in skipped and not word.text.startswith("-")
        ]
        inner = replace(around, user=users[0] if users else "root")
        return at + 1 < len(words) and self._script(words[at + 1].text, words[at + 1].line, inner)

    def _script(
        self,
        script: str,
        line: int,
        around: Surroundings,
        *,
        arguments: tuple[str, ...] | None = None,
        counts: bool = True,
    ) -> bool:
        before = len(self.launches)
        run(
            plain(script),
            line=line,
            around=around,
            notes=self.notes,
            handler=self.command,
            arguments=arguments,
            counts=counts,
        )
        return len(self.launches) > before

    def _file(self, words: list[Word], around: Surroundings) -> bool:
        name, line = words[0].text, words[0].line
        text = around.reads.read(name) if UNKNOWN not in name else None
        if text is None or not _STARTS.search(text):
            self.seen.append((plain(name), line))
            return False
        self.notes.add(line, f"{plain(name)} was read as well; its lines are counted as this one")
        arguments = tuple(word.text for word in words[1:])
        return self._script(text, line, around, arguments=arguments, counts=False)

    def _foreign(self, words: list[Word], around: Surroundings) -> bool:
        """A program that is not SGLang; a script that is here is read."""
        rest = list(words)
        while rest and posixpath.basename(rest[0].text) in _TRANSPARENT:
            rest = rest[1:]
        if not rest:
            return False
        if engine := engine_of(rest):
            self.engines.append((engine, rest[0].line))
            return False
        if rest[0].text.endswith(".sh") or "/" in rest[0].text:
            return self._file(rest, around)
        self.seen.append((plain(rest[0].text), rest[0].line))
        return False


def _start(words: Sequence[Word], at: int) -> tuple[int, bool] | None:
    """Where SGLang's own arguments begin when it is started at this word, and whether by `sglang serve`."""
    text = words[at].text
    following = words[at + 1].text if at + 1 < len(words) else ""
    if text == "-m" and following in _MODULES:
        return at + 2, False
    if text == "-m" and following in ("sglang", "sglang.cli.main"):
        return (at + 3, True) if at + 2 < len(words) and words[at + 2].text == "serve" else None
    if text.startswith("-m") and text[2:] in _MODULES:
        return at + 1, False
    name = posixpath.basename(text)
    if name == "sglang" and following == "serve":
        return at + 2, True
    is_script = name == "launch_server.py" and (at == 0 or following.startswith("-"))
    return (at + 1, False) if is_script else None
