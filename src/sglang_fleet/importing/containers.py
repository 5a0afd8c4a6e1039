"""What `docker run` and a compose file say about a container, as what a server on the host itself would start in."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import UNKNOWN, Notes, Surroundings, Word, plain, unknown
from sglang_fleet.importing.engines import is_sglang
from sglang_fleet.masking import mask

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ENGINES = ("docker", "podman", "nerdctl")
# docker-run(1): options without a value. Every other long one takes a value.
_SWITCHES = frozenset(
    """
    --detach --disable-content-trust --env-host --help --http-proxy --init --interactive --no-healthcheck --no-hosts
    --oom-kill-disable --privileged --publish-all --quiet --read-only --read-only-tmpfs --replace --rm --rmi --sig-proxy
    --tls-verify --tty
    """.split()  # noqa: SIM905 - a paragraph reads better than a column
)
_SHORT_SWITCHES = "ditqP"
_LONG = {
    "-e": "--env",
    "-v": "--volume",
    "-w": "--workdir",
    "-u": "--user",
    "-p": "--publish",
    "-m": "--memory",
    "-c": "--cpu-shares",
    "-l": "--label",
    "-h": "--hostname",
}
# Nothing of a server on the host needs these.
_WITHOUT_LOSS = frozenset(
    """
    --detach --gpus --hostname --init --interactive --label --name --platform --pull --quiet --replace --restart --rm
    --runtime --security-opt --tty
    """.split()  # noqa: SIM905 - a paragraph reads better than a column
)


@dataclass(slots=True)
class Container:
    """What was said about a container; each value with its line. `line` is the image's."""

    image: str = ""
    line: int = 0
    name: str = ""
    entrypoint: list[Word] | None = None
    environment: dict[str, tuple[str, int]] = field(default_factory=dict)
    volumes: list[tuple[str, str, int]] = field(default_factory=list)
    ports: list[tuple[str, int]] = field(default_factory=list)
    limits: dict[str, str] = field(default_factory=dict)
    gpus: tuple[int, ...] | None = None
    directory: tuple[str, int] | None = None
    others: list[tuple[str, int]] = field(default_factory=list)


def is_run(words: Sequence[Word]) -> bool:
    """Whether this is `docker run` or the like."""
    return posixpath.basename(words[0].text) in _ENGINES and any(word.text in ("run", "create") for word in words[1:4])


def read_run(words: Sequence[Word], around: Surroundings, notes: Notes) -> tuple[list[Word], Surroundings]:
    """The command that runs inside of a container, and what it starts in.

    Args:
        words: the whole `docker run …`.
        around: what docker itself starts in.
        notes: takes what is not carried over.
    """
    start = next(index for index, word in enumerate(words) if word.text in ("run", "create")) + 1
    found = Container(line=words[0].line)
    at = start
    while at < len(words) and words[at].text.startswith("-") and words[at].text != "--":
        at = _option(words, at, found, around, notes)
    rest = list(words[at:])
    if rest and rest[0].text == "--":
        rest = rest[1:]
    if rest:
        found.image, found.line = plain(rest[0].text), rest[0].line
    return [*(found.entrypoint or []), *rest[1:]], inside(found, around, notes)


def inside(found: Container, around: Surroundings, notes: Notes) -> Surroundings:
    """What a command inside of the container starts in; notes what is not carried over."""
    if found.image and not is_sglang(found.image):  # those are named together with their release
        notes.add(found.line, f"image {mask(found.image)}: the product installs SGLang on the host itself")
    if found.others:
        names = ", ".join(dict.fromkeys(name for name, _ in found.others))
        notes.add(found.others[0][1], f"the container's {names}: not carried over")
    for source, target, line in found.volumes:
        if not source.startswith("/") or UNKNOWN in source:
            notes.add(line, f"volume {plain(source)} on {target}: where it is on the host is not known here")
        elif target.rstrip("/").endswith("/.cache/huggingface") and "HF_HOME" not in found.environment:
            notes.add(line, f"models of a hub are kept in {source}: set HF_HOME and writable_paths to go on using it")
    if found.directory is not None:
        directory, line = found.directory
        notes.add(line, f"working directory {plain(directory)}: a folder of the container")
    return replace(
        around,
        environment={name: value for name, (value, _) in found.environment.items()},
        lines={name: line for name, (_, line) in found.environment.items()},
        directory=None,
        user=None,
        limits=dict(found.limits),
        gpus=found.gpus,
        volumes=tuple((target.rstrip("/"), source) for source, target, _ in found.volumes if source.startswith("/")),
        container=True,
        image=(found.image, found.line),
        name=plain(found.name),
        ports=tuple(found.ports),
    )


def variable(text: str, around: Surroundings) -> tuple[str, str]:
    """`NAME=value`, or `NAME` for one that is taken from outside."""
    name, equals, value = text.partition("=")
    if not equals:
        value = around.environment.get(name, unknown(f"${name}"))
    return name, value


def env_file(name: str, line: int, found: Container, around: Surroundings, notes: Notes) -> None:
    """The variables of a file with a `NAME=value` on each line."""
    text = around.reads.read(name) if UNKNOWN not in name else None
    if text is None:
        notes.add(line, f"{plain(name)} is not here: the variables that it sets are not carried over")
        return
    for written in text.splitlines():
        stripped = written.strip()
        if stripped and not stripped.startswith("#"):
            key, value = variable(stripped, around)
            if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
                value = value[1:-1]
            found.environment[key.removeprefix("export ").strip()] = value, line


def device_ids(text: str) -> tuple[int, ...] | None:
    """The indices of `0,1` or `device=0,1`; None when they are no plain indices."""
    ids = plain(text).strip("\"' ").removeprefix("device=").strip("\"' ").split(",")
    return tuple(int(one) for one in ids) if all(re.fullmatch(r"[0-9]{1,4}", one.strip()) for one in ids) else None


def set_gpus(text: str, line: int, found: Container, notes: Notes) -> None:
    """`--gpus`: all, a number, or devices."""
    if text.strip("\"'") == "all":
        return
    ids = device_ids(text) if "device" in text else None
    if ids is None:
        notes.add(line, f"GPUs {plain(text)}: which these are only the host knows; write gpus: [0, …]")
    else:
        found.gpus = ids


def set_limit(text: str, found: Container) -> None:
    """`memlock=-1`, `nofile=65536:65536`: docker's own words for a limit."""
    name, _, value = text.partition("=")
    soft = value.partition(":")[0]
    found.limits[name] = "infinity" if soft == "-1" else soft


def _option(words: Sequence[Word], at: int, found: Container, around: Surroundings, notes: Notes) -> int:
    """One option; where the next word starts."""
    text = words[at].text
    for name, value in _options_of(text):
        if value is None and name not in _SWITCHES:
            at += 1
            taken = words[at] if at < len(words) else Word("", words[-1].line)
            _set(name, taken, found, around, notes)
        else:
            _set(name, Word(value or "", words[at].line), found, around, notes)
    return at + 1


def _options_of(text: str) -> Iterator[tuple[str, str | None]]:
    """`--env=A`, `-itd`, `-p80:80`, `-dp 80:80` as long names; a value only where it stands in the same word."""
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        yield name, value if equals else None
        return
    for index, letter in enumerate(text[1:], start=1):
        if letter in _SHORT_SWITCHES:
            yield {"d": "--detach", "i": "--interactive", "t": "--tty", "q": "--quiet"}.get(letter, "--publish-all"), ""
        else:
            rest = text[index + 1 :].removeprefix("=")
            yield _LONG.get(f"-{letter}", f"-{letter}"), rest or None
            return


def _set(name: str, value: Word, found: Container, around: Surroundings, notes: Notes) -> None:
    text, line = value.text, value.line
    match name:
        case "--env":
            key, content = variable(text, around)
            found.environment[key] = content, line
        case "--env-file":
            env_file(text, line, found, around, notes)
        case "--volume" | "--mount":
            found.volumes.append((*(_volume(text) if name == "--volume" else _mount(text)), line))
        case "--publish":
            found.ports.append((text, line))
        case "--gpus":
            set_gpus(text, line, found, notes)
        case "--ulimit":
            set_limit(text, found)
        case _:
            _set_itself(name, value, found)


def _set_itself(name: str, value: Word, found: Container) -> None:
    """What is said about the container itself, and what is said for nothing."""
    text, line = value.text, value.line
    match name:
        case "--device" if re.fullmatch(r"nvidia\.com/gpu=[0-9]{1,4}", text):
            found.gpus = (*(found.gpus or ()), int(text.partition("=")[2]))
        case "--name":
            found.name = text
        case "--workdir":
            found.directory = text, line
        case "--entrypoint":
            found.entrypoint = [value] * bool(text)
        case _ if name not in _WITHOUT_LOSS and not text.startswith("nvidia.com/gpu="):
            found.others.append((name, line))


def _volume(text: str) -> tuple[str, str]:
    source, _, rest = text.partition(":")
    return source, rest.partition(":")[0] or source


def _mount(text: str) -> tuple[str, str]:
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    source = parts.get("source") or parts.get("src") or ""
    return source, parts.get("target") or parts.get("destination") or parts.get("dst") or ""
