"""What one rule finds and what it does not, a line each."""

from typing import Any

import pytest

from tests.unit.lint.views import NAME, applied, ask, view


def finds(rule: str, key: str, /, *, words: str = "", **settings: Any) -> Any:  # noqa: ANN401  # pytest names no type
    """A case: the rule finds one thing, at this argument, or at this path when there is a dot in it.

    Args:
        rule: the id.
        key: the argument, or the path below the service, or (with a leading dot) from the top.
        words: what the message has to say.
        settings: of `views.view`.
    """
    return pytest.param(rule, key, words, settings, id=f"{rule}-{key}-{_short(settings)}")


def passes(rule: str, /, **settings: Any) -> Any:  # noqa: ANN401  # as above
    """A case: the rule finds nothing."""
    return pytest.param(rule, settings, id=f"{rule}-{_short(settings)}")


def assert_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    """The one finding is in its place, reads well, and its edits leave nothing to find."""
    one = view(**settings)
    (found,) = ask(rule, one)
    assert found.key == _path(key)
    assert words in found.message
    assert not found.message.endswith(".")
    assert len(found.message) <= 170, "about two lines"
    if found.edits and all(edit.key.startswith(f"services.{NAME}.args.") for edit in found.edits):
        assert not ask(rule, view(**{**settings, "args": applied(found, one)}))


def _path(key: str) -> str:
    if key.startswith("."):
        return key[1:]
    return f"services.{NAME}.{key}" if "." in key or key == "gpus" else f"services.{NAME}.args.{key}"


def _short(settings: dict[str, Any]) -> str:
    parts = [f"{name}={value}" for name, value in (settings.get("args") or {}).items()]
    parts += [f"{name}" for name in settings if name not in ("args", "state", "model", "version")]
    return ",".join([*parts, settings.get("version", "")]).replace(" ", "")
