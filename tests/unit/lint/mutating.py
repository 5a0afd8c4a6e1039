"""A pytest plugin that breaks each rule in two ways and notes whether its tests see it: -p tests.unit.lint.mutating.

After a test has passed it is called again with one of the rules that it asked made silent, and again with that rule
made to find something everywhere. A test that fails then is the proof that the rule is tested.
"""

import inspect
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.lint.found import Found
from sglang_fleet.lint.rule import Rule
from sglang_fleet.lint.rules import RULES

SILENT, LOUD = "a test that fails when it finds nothing", "a test that fails when it finds something everywhere"
RESULT = "SGLANG_FLEET_UNTESTED_RULES"

_asked: set[str] = set()
_unproven = {(rule.id, kind) for rule in RULES for kind in (SILENT, LOUD)}
_rules = {rule.id: rule for rule in RULES}


def _noting(rule: Rule) -> Callable[[Any], Iterable[Found]]:
    real = rule.check

    def check(view: object) -> Iterable[Found]:
        _asked.add(rule.id)
        return real(view)

    check.__doc__ = real.__doc__
    return check


@contextmanager
def _broken(rule: Rule, kind: str) -> Iterator[None]:
    real = rule.check

    def check(view: object) -> Iterator[Found]:
        found = list(real(view))
        if kind == LOUD:
            yield from found or [Found("", "is broken for a test")]

    object.__setattr__(rule, "check", check)
    try:
        yield
    finally:
        object.__setattr__(rule, "check", real)


def pytest_configure() -> None:
    for rule in RULES:
        object.__setattr__(rule, "check", _noting(rule))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A hypothesis test would search for the smallest example of what was broken on purpose."""
    items[:] = [item for item in items if not hasattr(getattr(item, "obj", None), "hypothesis")]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    _asked.clear()
    test = pyfuncitem.obj
    cases = deepcopy(pyfuncitem.callspec.params) if hasattr(pyfuncitem, "callspec") else {}  # tests may change them
    fixtures = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters if name not in cases}
    result = yield
    open_ones = sorted((name, kind) for name, kind in _unproven if name in _asked)
    if not open_ones or _fails(test, fixtures, cases):  # a test that cannot be called twice proves nothing
        return result
    for name, kind in open_ones:
        with _broken(_rules[name], kind):
            if _fails(test, fixtures, cases):
                _unproven.discard((name, kind))
    return result


def _fails(test: Callable[..., None], fixtures: dict[str, object], cases: dict[str, object]) -> bool:
    try:
        test(**fixtures, **deepcopy(cases))
    except Exception:  # noqa: BLE001  # however a test fails
        return True
    return False


def pytest_sessionfinish() -> None:
    Path(os.environ[RESULT]).write_text(json.dumps(sorted(_unproven)))
