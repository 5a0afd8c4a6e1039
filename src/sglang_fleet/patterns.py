"""The names and patterns that choose hosts of an inventory, as pyinfra's `--limit` and `--exclude` read them."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

OPTIONS = ("--limit", "--exclude")


def nobody(
    option: str, patterns: Iterable[str], *, hosts: Collection[str], groups: Mapping[str, Collection[object]]
) -> str:
    """What to say of the patterns that match no host, which pyinfra passes over; empty where each matches one.

    A mistyped name would leave a host as it is that was meant to change, or have one change that was to be left out.

    Args:
        option: of `OPTIONS`.
        patterns: what it was given.
        hosts: every host of the inventory.
        groups: every group of the inventory, with its hosts.
    """
    # pyinfra keeps no group without hosts: it is as unknown as a mistyped one.
    missing = [pattern for pattern in dict.fromkeys(patterns) if not _matches(pattern, hosts=hosts, groups=groups)]
    return "; ".join(
        f"{option} {pattern} matches no host of the inventory{_near(pattern, [*hosts, *groups])}" for pattern in missing
    )


def given(words: Sequence[str], option: str) -> list[str]:
    """The patterns that an option has on pyinfra's command line, written in one word or in two."""
    following = zip(words, [*words[1:], ""], strict=True)
    return [
        next_word if word == option else word.removeprefix(f"{option}=")
        for word, next_word in following
        if word == option or word.startswith(f"{option}=")
    ]


def _matches(pattern: str, *, hosts: Collection[str], groups: Mapping[str, Collection[object]]) -> bool:
    return bool(groups[pattern]) if pattern in groups else any(fnmatch(host, pattern) for host in hosts)


def _near(pattern: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    near = get_close_matches(pattern, dict.fromkeys(known))
    return f" (did you mean {' or '.join(near)}?)" if near else ""
