"""Judging the settings of a fleet: places, hosts, waivers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sglang_fleet.lint.fixing import fixes
from sglang_fleet.lint.found import Found
from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules import RULES
from sglang_fleet.lint.run import Finding, lint
from sglang_fleet.lint.views import ServiceView
from sglang_fleet.spec import Loaded
from tests.unit.lint.fleets import ALL, Load

GRAPHS_OFF = ALL.splitlines().index("      disable_cuda_graph: true") + 1


def of(findings: list[Finding], rule: str) -> list[Finding]:
    return [finding for finding in findings if finding.rule == rule]


def waiving(text: str) -> str:
    return ALL.replace("disable_cuda_graph: true", f"disable_cuda_graph: true # waive {text}")


def judged(loaded: Loaded, *, complete: bool = True) -> list[Finding]:
    return lint(loaded, complete=lambda _file: complete)


def test_a_finding_is_where_the_setting_is_written(fleet: Load) -> None:
    (finding,) = of(judged(fleet()), "SGL201")
    assert finding.problem.file is not None
    assert (finding.problem.file.name, finding.problem.line) == ("all.yml", GRAPHS_OFF)
    assert finding.problem.key == "services.k26.args.disable_cuda_graph"
    assert finding.severity == "warning"


def test_hosts_that_share_a_finding_are_in_one(fleet: Load) -> None:
    own = "services: {k26: {args: {port: 30001}}}"
    (finding,) = of(judged(fleet({"host_vars/h2.yml": own}, hosts=["h1", "h2", "h3"])), "SGL201")
    assert sorted(finding.problem.hosts) == ["h1", "h2", "h3"]


def test_hosts_that_have_it_from_different_files_are_apart(fleet: Load) -> None:
    own = "services: {k26: {args: {disable_cuda_graph: true}}}"
    found = of(judged(fleet({"host_vars/h2.yml": own}, hosts=["h1", "h2"])), "SGL201")
    assert [finding.problem.hosts for finding in found] == [("h1",), ("h2",)]


def test_equal_settings_are_judged_once(fleet: Load) -> None:
    asked = []

    @service_rule("SGL999", "note")
    def counts(view: ServiceView) -> Iterator[Found]:
        asked.append(view.service.name)
        yield view.found("port", "x")

    (finding,) = of(lint(fleet(hosts=["h1", "h2", "h3"]), rules=[counts]), "SGL999")
    assert asked == ["k26"]
    assert finding.problem.hosts == ("h1", "h2", "h3")


def test_one_wrong_setting_does_not_hide_what_else_is_to_be_said(fleet: Load) -> None:
    found = judged(fleet({"group_vars/all.yml": ALL + "      nnodes: 2\n      tpp_size: 8\n"}))
    assert [finding.problem.key for finding in of(found, "SGL001")] == [
        "services.k26.args.nnodes",
        "services.k26.args.tpp_size",
    ]
    assert of(found, "SGL201")


def test_a_service_that_cannot_be_read_does_not_hide_the_others(fleet: Load) -> None:
    other = "  other:\n    gpus: [7]\n    args: {model_path: /models/other, port: http}\n"
    found = judged(fleet({"group_vars/all.yml": ALL + other}))
    assert [finding.problem.key for finding in of(found, "SGL001")] == ["services.other.args.port"]
    assert of(found, "SGL201")


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ("      tp_size: eight\n", "args.tp_size"),
        ("      port: 99999\n", "args.port"),
        ("      api_key: x\n", "args.api_key"),
        ("    nccl: {bogus: 3}\n", "nccl.bogus"),
        ("    limits: {nofile: x}\n", "limits.nofile"),
        ("    environment: {A: true}\n", "environment.A"),
        ("    extra_args: --port 8\n", "extra_args"),
        ("    secrets: {api_key: {env: a-b}}\n", "secrets.api_key.env"),
        ("    gpus: [a]\n", "gpus[0]"),
    ],
)
def test_a_value_of_the_wrong_kind_does_not_hide_what_else_is_to_be_said(fleet: Load, wrong: str, key: str) -> None:
    loaded = fleet({"group_vars/all.yml": ALL + wrong})
    found = judged(loaded)
    assert [finding.problem.key for finding in of(found, "SGL001")] == [f"services.k26.{key}"]
    assert of(found, "SGL201")
    assert not loaded.deployments
    assert not loaded.readable["h1"].services
    # What is offered might rest on the default that stands in for the wrong value.
    assert not any(finding.edits or finding.safe for finding in found)


def test_another_name_of_an_argument_is_put_right(fleet: Load) -> None:
    text = ALL + "      tensor_parallel_size: 2 # half of them\n"
    loaded = fleet({"group_vars/all.yml": text}, hosts=["h1", "h2"])
    (finding,) = of(judged(loaded), "SGL001")
    assert (finding.problem.message, finding.safe) == ("is another name of tp_size", True)
    (change,) = fixes([finding], loaded).changes.values()
    assert change.after == text.replace("tensor_parallel_size", "tp_size")


@pytest.mark.parametrize("more", ["      tp_size: 2\n", "      tp-size: 2\n"])
def test_another_name_is_not_put_right_beside_the_argument_itself(fleet: Load, more: str) -> None:
    found = judged(fleet({"group_vars/all.yml": ALL + "      tensor_parallel_size: 2\n" + more}))
    assert not any(finding.edits for finding in of(found, "SGL001"))


def test_another_name_with_a_wrong_value_is_not_put_right(fleet: Load) -> None:
    (finding,) = of(judged(fleet({"group_vars/all.yml": ALL + "      tensor_parallel_size: x\n"})), "SGL001")
    assert not finding.edits
    assert not finding.safe


def test_another_name_is_put_right_for_every_host_or_for_none(fleet: Load) -> None:
    text = ALL + "      tensor_parallel_size: 2\n"
    own = "services: {k26: {args: {tensor_parallel_size: x}}}"
    for hosts in (["h1", "h2"], ["h2", "h1"]):
        found = judged(fleet({"group_vars/all.yml": text, "host_vars/h2.yml": own}, hosts=hosts))
        assert not any(finding.edits for finding in of(found, "SGL001"))


def test_nothing_is_said_of_a_setting_that_is_only_wrong(fleet: Load) -> None:
    """SGL121 is about a pipeline that has no depth."""
    assert of(judged(fleet({"group_vars/all.yml": ALL + "      pp_size: 2\n"})), "SGL121")
    found = judged(fleet({"group_vars/all.yml": ALL + "      pp_size: 2\n      pp_async_batch_depth: deep\n"}))
    assert not of(found, "SGL121")


@pytest.mark.parametrize(
    "wrong", ["  k27: {args: {model_path: 3}}\n", "  k27: 3\n", "  K27: {args: {model_path: m}}\n"]
)
def test_a_service_of_which_nothing_is_left_is_not_judged(fleet: Load, wrong: str) -> None:
    loaded = fleet({"group_vars/all.yml": ALL + wrong})
    assert list(loaded.judged["h1"].services) == ["k26"]


def test_settings_of_nobody_are_a_note(fleet: Load) -> None:
    (finding,) = of(judged(fleet({"host_vars/h9.yml": "{}"})), "SGL007")
    assert finding.severity == "note"
    assert finding.problem.file is not None
    assert finding.problem.file.name == "h9.yml"


def test_findings_are_in_order_of_their_places(fleet: Load) -> None:
    own = "services: {k26: {args: {disable_cuda_graph: true}}}"
    found = judged(fleet({"host_vars/h1.yml": own, "host_vars/h2.yml": own}, hosts=["h2", "h1"]))
    places = [(str(finding.problem.file), finding.problem.line or 0) for finding in found]
    assert places == sorted(places)


def test_a_waiver_keeps_its_reason_with_the_finding(fleet: Load) -> None:
    found = judged(fleet({"group_vars/all.yml": waiving("SGL201: no memory")}))
    assert [finding.waived for finding in of(found, "SGL201")] == ["no memory"]
    assert of(found, "SGL005") == of(found, "SGL006") == []


def test_a_waiver_of_another_rule_waives_nothing_and_is_said(fleet: Load) -> None:
    found = judged(fleet({"group_vars/all.yml": waiving("SGL501: no memory")}))
    assert [finding.waived for finding in of(found, "SGL201")] == [""]
    (idle,) = of(found, "SGL006")
    assert idle.problem.line == GRAPHS_OFF
    assert idle.severity == "note"


def test_a_waiver_without_a_reason_is_said(fleet: Load) -> None:
    found = judged(fleet({"group_vars/all.yml": waiving("SGL201")}))
    assert [finding.waived for finding in of(found, "SGL201")] == [""]
    assert [finding.problem.line for finding in of(found, "SGL005")] == [GRAPHS_OFF]


def test_settings_that_cannot_be_used_cannot_be_waived(fleet: Load) -> None:
    found = judged(fleet({"group_vars/all.yml": ALL + "      tp_size: eight # waive SGL001: it is fine\n"}))
    rules = ("SGL001", "SGL005")
    assert [(one.rule, one.waived) for one in found if one.rule in rules] == [("SGL001", ""), ("SGL005", "")]


def test_a_waiver_that_waives_nothing_is_said_only_where_all_is_known(fleet: Load) -> None:
    """The rule may have been left out, the host not judged, the value overridden, or another inventory concerned."""
    idle = waiving("SGL501: why")
    loaded = fleet({"group_vars/all.yml": idle})
    assert of(judged(loaded), "SGL006")
    assert not of(judged(loaded, complete=False), "SGL006")
    assert not of(lint(loaded, rules=(), complete=lambda _file: True), "SGL006")
    broken = fleet({"group_vars/all.yml": idle, "host_vars/h2.yml": "nonsense: 1"}, hosts=["h1", "h2"])
    assert not of(judged(broken), "SGL006")


@pytest.mark.parametrize("needs", ["host", "model", "unit"])
def test_a_waiver_of_a_rule_that_lint_did_not_ask_is_not_called_idle(fleet: Load, needs: str) -> None:
    rule = next(rule.id for rule in RULES if rule.needs == needs)
    found = judged(fleet({"group_vars/all.yml": waiving(f"{rule}: why")}))
    assert not of(found, "SGL006")


def test_a_waiver_counts_for_the_hosts_whose_value_stands_there(fleet: Load) -> None:
    own = "services:\n  k26:\n    args:\n      disable_cuda_graph: true\n"
    files = {"group_vars/all.yml": waiving("SGL201: why"), "host_vars/h2.yml": own}
    found = of(judged(fleet(files, hosts=["h1", "h2"])), "SGL201")
    assert {finding.problem.hosts: finding.waived for finding in found} == {("h1",): "why", ("h2",): ""}


def test_a_finding_about_something_missing_is_waived_at_the_mapping_that_lacks_it(fleet: Load, tmp_path: Path) -> None:
    @service_rule("SGL123", "warning")
    def missing(view: ServiceView) -> Iterator[Found]:
        yield view.found("pp_size", "is missing")

    text = ALL.replace("    args:\n", "    args: # waive SGL123: on purpose\n")
    (finding,) = of(lint(fleet({"group_vars/all.yml": text}), rules=[missing]), "SGL123")
    assert finding.problem.file == tmp_path / "group_vars/all.yml"
    assert finding.waived == "on purpose"


def test_an_override_has_no_place_for_a_waiver(fleet: Load) -> None:
    files = {"group_vars/all.yml": waiving("SGL201: why")}
    found = judged(fleet(files, overrides={"services.k26.args.disable_cuda_graph": True}), complete=False)
    assert [finding.waived for finding in of(found, "SGL201")] == [""]


def test_a_release_that_no_catalogue_knows_is_a_warning_and_can_be_waived(fleet: Load) -> None:
    text = ALL.replace("version: 0.5.23,", "version: 0.5.99, # waive SGL002: it is our own build\n ")
    found = judged(fleet({"group_vars/all.yml": text + "      brand_new_argument: 1\n"}))
    assert [(one.severity, one.waived) for one in of(found, "SGL002")] == [("warning", "it is our own build")]
    assert [(one.severity, one.problem.key) for one in of(found, "SGL003")] == [
        ("warning", "services.k26.args.brand_new_argument")
    ]
    assert of(found, "SGL201"), "other rules are asked, too"
