"""Commands that start another one in other surroundings: `env`, `sudo`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import unknown

if TYPE_CHECKING:
    from sglang_fleet.importing.basis import Surroundings, Word

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SUDO_WITH_VALUE = ("-g", "-h", "-p", "-C", "-r", "-t", "-T", "-D", "-R", "-U")


def env(words: list[Word], around: Surroundings) -> tuple[list[Word], Surroundings]:
    """What follows `env …`, and what it starts in."""
    at = 1
    while at < len(words):
        text = words[at].text
        if text in ("-i", "-", "--ignore-environment"):
            around = replace(around, environment={})
        elif text in ("-u", "--unset") or text.startswith(("--unset=", "-u")):
            name = text.partition("=")[2] or text[2:] if text not in ("-u", "--unset") else ""
            at += not name
            name = name or (words[at].text if at < len(words) else "")
            around = replace(around, environment={k: v for k, v in around.environment.items() if k != name})
        elif text in ("-C", "--chdir"):
            at += 1
            around = replace(around, directory=words[at].text if at < len(words) else None)
        elif text in ("-S", "--split-string") or text == "--":
            pass
        elif _VARIABLE.match(text):
            name, _, value = text.partition("=")
            around = around.with_variables({name: value}, words[at].line)
        elif not text.startswith("-"):
            break
        at += 1
    return words[at:], around


def sudo(words: list[Word], around: Surroundings) -> tuple[list[Word], Surroundings]:
    """What follows `sudo …`, and what it starts in."""
    at, user = 1, "root"
    while at < len(words):
        text = words[at].text
        if text in ("-u", "--user"):
            at += 1
            user = words[at].text if at < len(words) else user
        elif text.startswith("--user="):
            user = text.partition("=")[2]
        elif text in _SUDO_WITH_VALUE:
            at += 1
        elif _VARIABLE.match(text):
            name, _, value = text.partition("=")
            around = around.with_variables({name: value}, words[at].line)
        elif not text.startswith("-"):
            break
        at += 1
    return words[at:], replace(around, user=user or unknown("$USER"))
