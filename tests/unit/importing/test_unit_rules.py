"""What the rules about units find in a hand-written one."""

from __future__ import annotations

from pathlib import Path

from sglang_fleet.importing.unit_rules import ABOUT
from sglang_fleet.lint.rules import RULES
from tests.unit.importing.support import START, imported, notes, unit

REPOSITORY = Path(__file__).parents[3]


def test_a_units_environment_is_not_judged_when_a_part_of_it_is_not_here() -> None:
    found = notes(imported(unit("EnvironmentFile=/etc/x"), "x.service"))
    assert "SGL610" in found
    assert "SGL630" not in found
    assert "SGL634" not in found


def test_what_a_script_in_the_unit_sets_counts() -> None:
    found = notes(
        imported(unit(command="/bin/bash -c 'export MAX_JOBS=4; python -m sglang.launch_server'"), "x.service")
    )
    assert "SGL634" not in found
    assert "SGL633" in found


def test_a_unit_of_ours_breaks_no_rule_and_loses_nothing() -> None:
    text = (REPOSITORY / "tests/unit/golden/sglang-k26.service").read_text()
    assert "SGL" not in notes(imported(text, "sglang-k26.service"))
    assert "the product's unit has" not in notes(imported(text, "sglang-k26.service"))


def test_only_rules_about_units_are_about_a_setting_of_one() -> None:
    assert set(ABOUT) <= {rule.id for rule in RULES if rule.subject == "unit"}


def test_a_containers_unit_is_not_judged_by_rules_for_servers_on_the_host() -> None:
    text = "[Container]\nImage=sglang\nExec=python3 -m sglang.launch_server --model-path m\n"
    assert "SGL" not in notes(imported(text, "a.container")).replace("SGLang", "")


def test_a_secret_in_a_unit_is_one_note_with_its_rule() -> None:
    text = unit("Environment=HF_TOKEN=poison-5ecret", command=f"{START} --model-path /m --api-key poison-5ecret")
    found = [each for each in notes(imported(text, "x.service")).splitlines() if "SGL636" in each]
    assert [each.partition(":")[0] for each in found] == ["2", "3"]
    assert "the value of HF_TOKEN stands here" in found[0]
    assert "export X_API_KEY on the controller" in found[1]
