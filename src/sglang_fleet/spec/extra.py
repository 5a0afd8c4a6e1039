"""extra_args: words that nobody checks, unless they say what belongs elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_fleet.spec.arguments import SECRETS, secret_fix
from sglang_fleet.spec.findings import Finding
from sglang_fleet.spec.service import KEPT_FOR_ARGS, kept_fix, misplaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sglang_fleet.spec import checks

_WRONG = re.compile(r"`(--[a-z0-9-]+)` (?:expects|takes|must be)")


def extra_arguments(
    words: Sequence[str],
    *,
    service: str,
    written: Iterable[str],
    catalogue: checks.Catalogue,
    is_nearest: bool = False,
    refused: bool = False,
) -> Iterator[Finding]:
    """What extra_args says of arguments that belong elsewhere, under any name that the release knows them by.

    Args:
        words: extra_args.
        service: the service's name.
        written: the names in args.
        catalogue: the arguments; nothing is found with another than the product's own, which can read words.
        is_nearest: they are those of another release, where a shortened name may mean something else.
        refused: the service was refused for the plainest of them, so that they need not be said again.
    """
    # Imported here: every run pays for what stands at the top, and hardly anybody has such words.
    from sglang_fleet.catalog import Catalogue as Own  # noqa: PLC0415 - see above
    from sglang_fleet.catalog.commandline import read  # noqa: PLC0415 - see above

    if not isinstance(catalogue, Own):
        return
    in_args = {found.name: name for name in written if (found := catalogue.find(name)) is not None}
    at = ("services", service, "extra_args")
    secrets, kept_names = misplaced(words) if refused else ([], [])
    said = {f"--{name.replace('_', '-')}" for name in (*secrets, *kept_names)}
    exact = {word.partition("=")[0] for word in words}
    line = read(words, catalogue)
    # Those that lack their value, or have a wrong one, are meant as well.
    wrong = [match[1] for problem in line.problems if (match := _WRONG.match(problem))]
    for argument in dict.fromkeys([*(given.argument.flag for given in line.given), *wrong]):
        found = catalogue.find(argument)
        assert found is not None  # noqa: S101  # it is the catalogue's own
        spellings = {found.flag, *found.aliases}
        if spellings & said or (is_nearest and not spellings & exact):
            continue
        names = [spelling.removeprefix("--").replace("-", "_") for spelling in (found.flag, *found.aliases)]
        secret = next((name for name in names if name in SECRETS), None)
        kept = next((name for name in names if name in KEPT_FOR_ARGS), None)
        if secret is not None:
            yield Finding(at, f"has {found.flag}, a secret that every user of the host could read", secret_fix(secret))
        elif kept is not None:
            yield Finding(at, f"has {found.flag}, which would contradict args", kept_fix(kept))
        elif found.name in in_args:
            message = f"has {found.flag}, which args has as well: SGLang takes the last, which is this one"
            yield Finding(at, message, f"keep {in_args[found.name]} in args, remove it here")
