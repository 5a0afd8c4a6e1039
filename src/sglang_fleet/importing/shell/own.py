"""What is known of commands: the limits that `ulimit` sets, and which others an operator should hear of."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import plain

if TYPE_CHECKING:
    from sglang_fleet.importing.basis import Word

_LIMITS = {"n": ("nofile", 1), "l": ("memlock", 1024), "u": ("nproc", 1), "c": ("core", 1024), "s": ("stack", 1024)}
"""bash's letters, the names of the limits, and the bytes of one unit (bash(1), "ulimit")."""

# Nothing is lost when these are left out.
_HARMLESS = frozenset(
    """
    alias awk basename bg break cat chmod clear command conda continue curl cut date df dirname disown docker echo env
    eval exec false fg find free fuser getopts git grep head hostname id jobs journalctl kill less let log ls lsof
    mktemp netstat nproc nvcc nvidia-smi pgrep pkill podman popd ps pwd read rm sed seq shopt sleep sort ss sync
    systemctl tail tee time timeout tmux touch tput tr trap type uname wait wc wget which whoami xargs
    """.split()  # noqa: SIM905 - a paragraph reads better than a column
)


def worth_a_note(words: list[Word]) -> bool:
    """Whether leaving a command out may matter."""
    own = _own(words)
    name = posixpath.basename(own[0].text) if own else ""
    return bool(name) and name not in _HARMLESS and own[0].is_known


def named(words: list[Word]) -> str:
    """A command by its first words, without what may be secret."""
    own = _own(words)
    shown = [plain(word.text) for word in own[:1]]
    return " ".join(shown + [plain(word.text) for word in own[1:2] if re.fullmatch(r"-{0,2}[a-z][a-z-]*", word.text)])


def limits_of(words: list[str]) -> dict[str, str]:
    """The limits that `ulimit` sets: `ulimit -n 65536 -l unlimited`, `ulimit -SHn 65536`."""
    found: dict[str, str] = {}
    for option, value in zip(words, [*words[1:], ""], strict=True):
        letter = option[-1] if option.startswith("-") else ""
        if letter in _LIMITS and re.fullmatch(r"unlimited|[0-9]{1,18}", value):
            name, unit = _LIMITS[letter]
            found[name] = "infinity" if value == "unlimited" else str(int(value) * unit)
    return found


def _own(words: list[Word]) -> list[Word]:
    return words[1:] if words[0].text == "sudo" else words
