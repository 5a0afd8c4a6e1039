"""What every noun of the spec shares: strict, unchanging, and errors in an operator's words."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

REFUSED = "refused"
"""The type of every error that `refusal` makes; its sentence needs no translation."""


class Noun(BaseModel):
    """A part of the spec. No value is converted to fit, nothing unknown is ignored, nothing changes later."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


def refusal(message: str, fix: str = "", *, rivals: tuple[str, ...] = ()) -> PydanticCustomError:
    """An error to raise in a validator: what is wrong, and what to do. Neither may hold a secret's value.

    Args:
        message: what is wrong.
        fix: what to do.
        rivals: the keys of which only one may be there, when there are several.
    """
    return PydanticCustomError(REFUSED, "{message}", {"message": message, "fix": fix, "rivals": rivals})


def _text(value: str) -> str:
    if not value.strip():
        raise refusal("is empty", "give it a value, or remove the key")
    if "\0" in value:
        raise refusal("holds a NUL character, which no argument or variable of a process can")
    return value


def _line(value: str) -> str:
    if not value.isprintable():
        raise refusal("holds a line break or a control character", "write it as one line")
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/") or ".." in value.split("/"):
        raise refusal(f"expects an absolute path on the host, got {value!r}", "write the whole path, from /")
    return value


def _relative(value: str) -> str:
    if value.startswith(("/", "~")):
        raise refusal(
            f"expects a path inside the project folder, got {value!r}",
            "put the file into the project, so that it is reviewed with it, and write its relative path",
        )
    return value


def _url(value: str) -> str:
    if not re.match(r"https?://[^\s/]", value):
        raise refusal(f"expects an http:// or https:// address, got {value!r}")
    return value


def _open(value: str) -> str:
    if re.match(r"[a-z+]+://[^/]*@", value):
        # The value is not repeated: the password would be in it.
        raise refusal(
            "holds a user name or password, which diffs and logs would show",
            "use an index that needs none, or a proxy",
        )
    return value


def _sha256(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", value):
        raise refusal(f"expects a SHA-256 of 64 lower-case hexadecimal digits, got {value!r}")
    return value


def _account(value: str) -> str:
    # What useradd takes without --badname (shadow 4.13, libmisc/chkname.c).
    if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,31}", value):
        raise refusal(f"is no name of an account: {value!r}", "use lower-case letters, digits, '-' and '_'")
    return value


Text = Annotated[str, AfterValidator(_text)]
Line = Annotated[str, AfterValidator(_text), AfterValidator(_line)]
HostPath = Annotated[Line, AfterValidator(_absolute)]
ProjectPath = Annotated[Line, AfterValidator(_relative)]
Location = Annotated[Line, AfterValidator(_open)]
Url = Annotated[Location, AfterValidator(_url)]
Sha256 = Annotated[str, AfterValidator(_sha256)]
Account = Annotated[str, AfterValidator(_account)]
Port = Annotated[int, Field(ge=1, le=65535)]
# Lists are read as tuples, so that they cannot change; `strict` would take nothing but a tuple.
# Their items stay strict.
Locations = Annotated[tuple[Location, ...], Field(strict=False)]
HostPaths = Annotated[tuple[HostPath, ...], Field(strict=False)]
