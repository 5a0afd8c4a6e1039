"""What holds for every rule: it is documented, has an id of its own in its subject's range, and is tested."""

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sglang_fleet.lint.explained import explanation
from sglang_fleet.lint.found import Found
from sglang_fleet.lint.register import EVERY, SUBJECTS, AnyRule, by_id, near
from sglang_fleet.lint.rule import host_rule, service_rule
from sglang_fleet.lint.rules import RULES
from sglang_fleet.lint.run import SEVERITIES
from sglang_fleet.lint.views import ServiceView
from tests.unit.lint import mutating

REPOSITORY = Path(__file__).parents[3]
TESTS_OF_RULES = ("tests/unit/lint/rules", "tests/unit/test_checks.py")
every_rule = pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.id)


@every_rule
def test_is_documented(rule: AnyRule) -> None:
    said = explanation(rule)
    assert 0 < len(said.title) <= 100
    assert not said.title.endswith(".")
    for paragraphs in (said.why, said.evidence, said.fix):
        assert paragraphs
        assert all(paragraphs)
    assert said.looks_at


@every_rule
def test_is_grave_in_a_known_way_and_of_a_known_subject(rule: AnyRule) -> None:
    assert rule.severity in SEVERITIES
    assert re.fullmatch(r"SGL[0-9]{3}", rule.id)
    assert rule.id[3] in SUBJECTS


@every_rule
def test_looks_at_what_its_subject_is_about(rule: AnyRule) -> None:
    if rule.id[3] == "8":
        assert rule.needs == "host"
    if rule.subject == "unit":
        assert rule.id[3] in "67"


def test_ids_are_unique() -> None:
    ids = [rule.id for rule in EVERY]
    assert ids == sorted(set(ids))


def test_every_rule_of_a_module_is_registered() -> None:
    """A rule in a module that `rules/__init__.py` does not list would never be asked."""
    found = set()
    for file in (REPOSITORY / "src/sglang_fleet/lint/rules").glob("*.py"):
        found |= set(re.findall(r'^@(?:service|host|unit)_rule\(\s*"(SGL[0-9]{3})"', file.read_text(), re.MULTILINE))
    assert found == {rule.id for rule in RULES}


def test_a_rule_without_a_section_is_refused() -> None:
    @service_rule("SGL999", "note")
    def undocumented(_view: ServiceView) -> Iterator[Found]:
        """Has a title, and nothing else."""
        yield from ()

    with pytest.raises(ValueError, match="SGL999"):
        _ = undocumented.documentation


@pytest.mark.parametrize("name", ["SGL1", "sgl101", "SGL1000", "E101", ""])
def test_an_id_is_three_digits(name: str) -> None:
    with pytest.raises(ValueError, match="three digits"):
        host_rule(name, "note")(lambda _view: ())


def test_an_id_is_found_in_any_case() -> None:
    assert by_id("sgl001") is EVERY[0]
    assert by_id("SGL999") is None


@pytest.mark.parametrize(
    ("name", "first"), [("1", "SGL001"), ("SGL-201", "SGL201"), ("E7", "SGL007"), ("SGL200", "SGL201")]
)
def test_a_wrong_id_has_near_ones(name: str, first: str) -> None:
    assert near(name)[0] == first


def test_an_id_with_another_spelling_is_near_to_itself_alone() -> None:
    assert near("SGL-201") == ("SGL201",)


def test_a_word_is_near_to_no_id() -> None:
    assert near("graphs") == ()


def test_every_rule_has_a_test_that_sees_it_silent_and_one_that_sees_it_loud(tmp_path: Path) -> None:
    """Broken on purpose, one after the other, each rule has to make tests of its own fail."""
    result = tmp_path / "untested.json"
    done = subprocess.run(
        (
            *(sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"),
            *("-p", mutating.__name__, *TESTS_OF_RULES),
        ),
        cwd=REPOSITORY,
        env=os.environ | {mutating.RESULT: str(result)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert [f"{rule} needs {what}" for rule, what in json.loads(result.read_text())] == []


def test_rules_look_at_one_thing() -> None:
    for rule in RULES:
        assert len(inspect.signature(rule.check).parameters) == 1
