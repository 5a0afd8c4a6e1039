"""Which SGLang, and where its packages come from."""

import re
from typing import Annotated

from pydantic import AfterValidator

from sglang_fleet.spec.base import Locations, Noun, ProjectPath, Url, refusal


def _version(value: str) -> str:
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+(\.?(post|rc|dev)[0-9]+)?", value):
        raise refusal(f"expects one exact version, got {value!r}", "write it like 0.5.23")
    return value


def _python(value: str) -> str:
    if not re.fullmatch(r"python3(\.[0-9]+)?|/[A-Za-z0-9_./+-]+", value):
        raise refusal(f"is no Python: {value!r}", "write python3.11, or the whole path of an interpreter")
    return value


def _without_comma(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if "," in value:
            raise refusal(
                f"holds a comma, which uv takes for the end of the place: {value!r}",
                "write several places as several items; rename a folder that has one in its name",
            )
    return values


class Sglang(Noun):
    """The environment that servers run in.

    Attributes:
        version: the exact release; the flags of every service are checked against it.
        requirements: the lock file with hashes, in the project folder; its content addresses the venv.
        index_url: the package index, if not the host's own.
        find_links: folders on the host, or addresses, that hold packages.
        python: the interpreter that the venv is made with.
    """

    version: Annotated[str, AfterValidator(_version)]
    requirements: ProjectPath
    index_url: Url | None = None
    find_links: Annotated[Locations, AfterValidator(_without_comma)] = ()
    python: Annotated[str, AfterValidator(_python)] = "python3"
