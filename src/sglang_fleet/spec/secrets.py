"""Where a secret is. The value itself never becomes part of the spec."""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, model_validator

from sglang_fleet.spec.base import Line, Noun, refusal

_FIX = "write exactly one of {env: NAME}, {file: PATH} or {command: COMMAND}"


def _variable(value: str) -> str:
    # The value is not repeated: who misreads `env:` writes the secret here.
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise refusal("expects the name of an environment variable", "write the variable's name, not the secret")
    return value


def _source(value: object) -> object:
    if isinstance(value, (str, int, float)):
        raise refusal("holds the secret itself", f"take it out of the file, and say where it is: {_FIX}")
    return value


def _name(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*|[A-Z_][A-Z0-9_]*", value):
        raise refusal(
            "is no name of a secret",
            "lower case names an argument of SGLang (api_key), upper case an environment variable (HF_TOKEN)",
        )
    return value


class SecretSource(Noun):
    """Where the controller finds the value, exactly one of three.

    Attributes:
        env: an environment variable of the controller.
        file: a file on the controller; relative to the project folder.
        command: a command on the controller that prints the value; split as a shell would, run without one.
    """

    env: Annotated[str, AfterValidator(_variable)] | None = None
    file: Line | None = None
    command: Line | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        named = tuple(name for name, value in self if value is not None)
        if len(named) != 1:
            raise refusal("needs one source", _FIX, rivals=named)
        return self


Secrets = dict[Annotated[str, AfterValidator(_name)], Annotated[SecretSource, BeforeValidator(_source)]]


def is_argument(name: str) -> bool:
    """Whether the secret is an argument of SGLang (`api_key`), or else a variable (`HF_TOKEN`)."""
    return re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None
