"""`explain` says what a rule is about."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from sglang_fleet.lint.register import EVERY

Run = Callable[..., Result]


def test_a_rule_is_explained_with_its_reasons_and_sources(run: Run) -> None:
    result = run("explain", "sgl201")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "SGL201: CUDA graphs are off"
    assert "  severity warning" in lines
    assert [line for line in lines if line and not line.startswith(" ")][1:] == ["Why", "Evidence", "Fix", "Waive"]
    assert "sglang PR#5209" in result.stdout
    assert lines[-1].strip() == "# waive SGL201: the reason"


@pytest.mark.parametrize("name", ["SGL001", "SGL610"])
def test_a_rule_that_cannot_be_waived_says_so(run: Run, name: str) -> None:
    assert run("explain", name).stdout.splitlines()[-1].strip() == "It cannot be waived."


def test_without_a_rule_all_are_listed_by_subject(run: Run) -> None:
    lines = run("explain").stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  SGL")] == [rule.id for rule in EVERY]
    assert "Settings, catalogue and waivers" in lines
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("rule", [rule.id for rule in EVERY])
def test_no_explanation_is_wider_than_80_columns(run: Run, rule: str) -> None:
    lines = run("explain", rule).stdout.splitlines()
    assert max(len(line) for line in lines if " " in line.strip()) <= 80


def test_an_unknown_rule_names_near_ones(run: Run) -> None:
    result = run("explain", "SGL200")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "SGL201" in result.stderr


def test_a_word_that_is_no_rule_points_to_the_list(run: Run) -> None:
    result = run("explain", "graphs")
    assert result.exit_code == 1
    assert "`sglang-fleet explain`" in result.stderr


def test_json_has_the_same(run: Run) -> None:
    one = json.loads(run("explain", "SGL201", "--json").stdout)
    assert list(one) == ["id", "severity", "title", "looks_at", "why", "evidence", "fix", "waiver"]
    assert json.loads(run("explain", "--json").stdout)[0]["id"] == "SGL001"


def test_help_has_an_example(run: Run) -> None:
    assert "sglang-fleet explain SGL201" in run("explain", "--help").stdout
