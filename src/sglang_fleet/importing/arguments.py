"""SGLang's words as the keys of `args`: the same flags, values and order, under names that the settings take."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import ValidationError

from sglang_fleet.catalog import Argument, Catalogue, catalogue
from sglang_fleet.catalog.commandline import Given, read
from sglang_fleet.catalog.store import key
from sglang_fleet.importing.basis import UNKNOWN, Launch, Notes, is_wholly_unknown, plain
from sglang_fleet.importing.groups import Group, argument_of, groups, last_release
from sglang_fleet.importing.secrets import Secrets, holds_login, holds_secret
from sglang_fleet.masking import MASK, is_sensitive, mask
from sglang_fleet.spec.arguments import SECRETS, Arguments

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True)
class Settings:
    """What the words of one server become."""

    args: dict[str, object] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)


def settings(launch: Launch, known: Catalogue, *, secrets: Secrets, notes: Notes) -> Settings:
    """The arguments of one server.

    Args:
        launch: the server.
        known: the flags of its release.
        secrets: takes the secrets.
        notes: takes what is not carried over as it is.
    """
    found = Settings()
    options, front = groups(launch.words)
    for word in front:
        notes.add(word.line, "a word in front of the first option belongs to no argument and was left out")
    for group in options:
        _add(found, _translated(group, launch, notes), known, secrets=secrets, notes=notes)
    if "model_path" not in found.args:
        notes.add(launch.line, "the command names no model: write args.model_path")
    return found


def _add(found: Settings, group: Group, known: Catalogue, *, secrets: Secrets, notes: Notes) -> None:
    argument = argument_of(group.flag, known)
    if argument is None:
        _add_foreign(found, group, known, secrets=secrets, notes=notes)
        return
    name = key_of(argument)
    if name == "config":
        notes.add(group.line, "--config: what its file sets is not carried over; write each setting as a key of args")
        return
    group = _without_unknown_words(group, argument, notes)
    is_text = argument.kind in ("str", "json")
    if is_text and not is_sensitive(name) and name not in SECRETS and any(map(holds_login, group.values)):
        group = _without_login(group, secrets, notes)
    if name in SECRETS or (is_text and (is_sensitive(name) or any(holds_secret(value) for value in group.values))):
        secrets.add(name, " ".join(group.values), line=group.line, flag=argument.flag)
        return
    for value in group.values:
        if plain(value) != value:
            notes.add(group.line, f"{argument.flag}: {value} is only known on the host; write its value")
    if name in found.args:
        notes.add(group.line, f"{argument.flag} stands there twice; the last one counts, as for SGLang")
    found.args[name] = _value(group, argument, name, known, notes)
    if name == "served_model_name" and any(":" in plain(value) for value in group.values):
        notes.add(group.line, f"{argument.flag} holds ':', which SGLang refuses, and lint too: write another name")


def _without_login(group: Group, secrets: Secrets, notes: Notes) -> Group:
    """The option with the login in its address hidden: what is left says which one it was."""
    for value in group.values:
        secrets.drop(value)
    notes.add(group.line, f"{group.flag} holds a login, which is {MASK} now: write the address without it")
    return Group(group.flag, tuple(mask(value) for value in group.values), group.line)


def _without_unknown_words(group: Group, argument: Argument, notes: Notes) -> Group:
    """The option less the words that a variable such as `$EXTRA_ARGS` may bring: nobody here knows which."""
    takes = 0 if argument.kind in ("flag", "switch") else 1
    if argument.nargs in ("*", "+") or len(group.values) <= takes:
        return group
    rest = [value for value in group.values[takes:] if not is_wholly_unknown(value)]
    for value in group.values[takes:]:
        if value not in rest:
            notes.add(group.line, f"{value}: what it adds is only known on the host: left out")
    return Group(group.flag, (*group.values[:takes], *rest), group.line)


def _add_foreign(found: Settings, group: Group, known: Catalogue, *, secrets: Secrets, notes: Notes) -> None:
    """An option that this release does not have."""
    if is_sensitive(group.flag) or any(holds_secret(value) for value in group.values):
        secrets.drop(" ".join(group.values))
        notes.add(
            group.line,
            f"{group.flag}: SGLang {known.version} has no such argument, and its value may be a secret: left out",
        )
        return
    last = last_release(group.flag)
    older = catalogue(last).find(group.flag) if last else None
    if older is not None and "_" not in group.flag:
        sentence = (known.check(group.flag, None) or "").replace("`", "")
        notes.add(group.line, f"{sentence}; kept in args")
        found.args[key_of(older)] = _value(group, older, key_of(older), catalogue(last), notes)
        return
    problem = next(iter(_problems(Group(group.flag, (), group.line), known)), f"{group.flag}: no such argument")
    notes.add(group.line, f"{problem}; kept in extra_args, at the end of the command line")
    found.extra += [group.flag, *(plain(value) for value in group.values)]


def key_of(argument: Argument) -> str:
    """The key of an argument: the one that the settings type, else as it was spelled."""
    names = [key(flag) for flag in (argument.flag, *argument.aliases)]
    typed = next((name for name in names if name in Arguments.model_fields or name in SECRETS), None)
    return typed or key(argument.written)


def _value(group: Group, argument: Argument, name: str, known: Catalogue, notes: Notes) -> object:
    """The value of a key: one that renders to the author's own words where there is such a one."""
    given = _given(group, argument, known)
    if not group.values and argument.nargs not in ("*", "?") and argument.kind not in ("flag", "switch"):
        # Nothing that loads would start; an empty value is one that lint points at.
        notes.add(group.line, f"{argument.flag} has no value, and SGLang refuses to start: write it")
        return ""
    if given is None:
        # An unknown value is said already.
        for problem in _problems(group, known) if all(map(_is_plain, group.values)) else ():
            notes.add(group.line, f"{problem}; kept as it is")
        values = [plain(value) for value in group.values]
        return values[0] if len(values) == 1 else values or True
    words = [plain(value) for value in group.values]
    raw: object = words[0] if len(words) == 1 else words
    candidates = [given.value, raw] if words else [given.value]
    exact = [value for value in candidates if _fits(name, value) and _renders(argument, value, words)]
    if exact:
        return exact[0]
    if _fits(name, given.value):
        return given.value
    return given.parsed if _fits(name, given.parsed) else given.value


def _is_plain(text: str) -> bool:
    return UNKNOWN not in text


def _renders(argument: Argument, value: object, words: Sequence[str]) -> bool:
    if argument.check(argument.name, value) is not None:
        return False
    rendered = argument.render(value)
    attached = len(words) == 1 and rendered == [f"{argument.written}={words[0]}"]
    return attached or rendered[1:] == list(words)


def _fits(name: str, value: object) -> bool:
    """Whether the settings take the value under this name."""
    try:
        Arguments.model_validate({"model_path": "x", name: value})
    except ValidationError:
        return False
    return True


def _given(group: Group, argument: Argument, known: Catalogue) -> Given | None:
    line = read(_read_words(group, argument), known)
    return line.given[0] if len(line.given) == 1 and not _relevant(line.problems) else None


def _read_words(group: Group, argument: Argument) -> list[str]:
    flag = group.flag if group.flag.startswith("--no-") and argument.kind == "switch" else argument.written
    values = [plain(value) for value in group.values]
    return [f"{flag}={values[0]}"] if len(values) == 1 else [flag, *values]


def _problems(group: Group, known: Catalogue) -> list[str]:
    return [text.replace("`", "") for text in _relevant(read(group.words, known).problems)]


def _relevant(problems: Sequence[str]) -> list[str]:
    return [text for text in problems if not text.endswith("is required")]


def _translated(group: Group, launch: Launch, notes: Notes) -> Group:
    """The option with paths of the container turned into the host's."""
    if not launch.around.container:
        return group
    values = []
    for value in group.values:
        translated = on_host(value, launch.around.volumes)
        if translated is None and re.match(r"/[^/]", plain(value)):
            notes.add(group.line, f"{group.flag} {plain(value)}: a path of the container that no known volume holds")
        elif translated not in (None, value):
            notes.add(group.line, f"{plain(value)} of the container is {translated} on the host")
        values.append(value if translated is None else translated)
    return Group(group.flag, tuple(values), group.line)


def on_host(path: str, volumes: Sequence[tuple[str, str]]) -> str | None:
    """A container's path on the host; None when no volume holds it."""
    for target, source in sorted(volumes, key=lambda volume: -len(volume[0])):
        if path.rstrip("/") == target or path.startswith(f"{target}/"):
            return source.rstrip("/") + path[len(target) :]
    return None
