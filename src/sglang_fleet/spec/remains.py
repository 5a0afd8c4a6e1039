"""What is left of a service when the settings that are wrong by themselves are taken away: for rules to judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sglang_fleet.spec.findings import KEY, Steps
from sglang_fleet.spec.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterable

# Taking one away may show another: a secret without its only source. Nothing is nested deeper.
_ROUNDS = 4


def remains(raw: Mapping[str, Any], *, name: str, error: ValidationError) -> tuple[dict[str, Any], tuple[Steps, ...]]:
    """A service without what is wrong in it, and the paths of what was taken away.

    It must never be deployed: where something was taken away, a default stands in.

    Args:
        raw: the service as written.
        name: its name.
        error: what `Service.model_validate` said of it.

    Raises:
        ValidationError: it cannot be made right by taking something away.
    """
    left, gone = dict(raw), dict[Steps, None]()
    for _ in range(_ROUNDS):
        errors = error.errors(include_url=False)
        taken = [path for details in errors for path in _without(left, details["loc"])]
        if not taken:  # what something is missing from goes as a whole, as if it had not been written
            missing = [details["loc"][:-1] for details in errors if details["type"] == "missing"]
            taken = [path for above in missing for path in _without(left, above)]
        if not taken:
            raise error
        gone.update(dict.fromkeys(taken))
        try:
            Service.model_validate({**left, "name": name})
        except ValidationError as another:
            error = another
        else:
            return left, tuple(gone)
    raise error


def _without(left: dict[str, Any], path: Iterable[str | int]) -> list[Steps]:
    """Take the setting at a path away, or the whole list that it stands in; none when there is none."""
    steps = [step for step in path if step != KEY]
    within: dict[str, Any] = left
    for count, step in enumerate(steps, start=1):
        if not isinstance(step, str) or step not in within:
            return []
        value = within[step]
        if count == len(steps) or not isinstance(value, Mapping):
            del within[step]
            return [tuple(steps[:count])]
        within[step] = dict(value)  # the settings themselves stay as they are
        within = within[step]
    return []
