"""Which edits are made, and in which files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sglang_fleet.lint.fixing import Fixes, fixes
from sglang_fleet.lint.found import Edit, Found, Remove, Rename, Set
from sglang_fleet.lint.rule import Rule, service_rule
from sglang_fleet.lint.run import Finding, lint
from sglang_fleet.lint.views import ServiceView
from sglang_fleet.spec import Loaded
from tests.unit.lint.fleets import ALL, KEY, Load

OFF = "      disable_cuda_graph: true\n"
OWN = "services:\n  k26:\n    args:\n"


def rule(*edits: Edit, safe: bool = True, when: str = "disable_cuda_graph") -> Rule:
    """A rule that wants these edits wherever an argument is written."""

    @service_rule("SGL201", "warning")
    def check(view: ServiceView) -> Iterator[Found]:
        if view.written(when):
            yield view.found(when, "x", edits=edits, safe=safe)

    return check


def made(loaded: Loaded, *edits: Edit, safe: bool = True, unsafe: bool = False) -> Fixes:
    return tried(lint(loaded, rules=[rule(*edits or (Remove(KEY),), safe=safe)]), loaded, unsafe=unsafe)


def tried(findings: Sequence[Finding], loaded: Loaded, *, unsafe: bool = False) -> Fixes:
    """The same as `fixes`; and a trial comes to the same."""
    found = fixes(findings, loaded, unsafe=unsafe)
    trial = fixes(findings, loaded, unsafe=unsafe, trial=True)
    assert (trial.fixed, trial.refused) == (found.fixed, found.refused)
    return found


def after(found: Fixes) -> dict[str, str]:
    return {f"{file.parent.name}/{file.name}": change.after for file, change in found.changes.items()}


def refused(found: Fixes) -> str:
    """Why no edit is made; nothing is changed then."""
    (why,) = {why for _, why in found.refused}
    assert not found.changes
    assert not found.fixed
    return why


def test_the_file_that_has_the_setting_is_changed(fleet: Load) -> None:
    found = made(fleet())
    assert after(found) == {"group_vars/all.yml": ALL.replace(OFF, "")}
    assert [finding.rule for finding in found.fixed] == ["SGL201"]
    assert not found.refused


def test_nothing_is_written_yet(fleet: Load, tmp_path: Path) -> None:
    made(fleet())
    assert (tmp_path / "group_vars/all.yml").read_text() == ALL


def test_an_edit_that_is_not_safe_has_to_be_asked_for(fleet: Load) -> None:
    loaded = fleet()
    assert not made(loaded, safe=False).changes
    assert after(made(loaded, safe=False, unsafe=True)) == {"group_vars/all.yml": ALL.replace(OFF, "")}


def test_what_is_waived_is_left_alone(fleet: Load) -> None:
    loaded = fleet({"group_vars/all.yml": ALL.replace("graph: true", "graph: true # waive SGL201: why")})
    found = [finding for finding in lint(loaded) if finding.rule == "SGL201"]
    assert found[0].waived
    assert tried(found, loaded, unsafe=True) == Fixes()


def test_a_hosts_own_file_is_changed_for_that_host_only(fleet: Load) -> None:
    files = {"group_vars/all.yml": ALL.replace(OFF, ""), "host_vars/h2.yml": OWN + OFF + "      port: 30001\n"}
    assert after(made(fleet(files, hosts=["h1", "h2"]))) == {"host_vars/h2.yml": OWN + "      port: 30001\n"}


def test_a_file_of_several_hosts_is_changed_when_all_of_them_have_the_finding(fleet: Load) -> None:
    found = made(fleet(hosts=["h1", "h2", "h3"]))
    assert after(found) == {"group_vars/all.yml": ALL.replace(OFF, "")}


def test_a_host_that_has_its_own_value_does_not_count(fleet: Load) -> None:
    """The finding is at each place of its own, and both are put right."""
    files = {"host_vars/h2.yml": OWN + "      disable_cuda_graph: false\n"}
    loaded = fleet(files, hosts=["h1", "h2"])
    wanted = [finding for finding in lint(loaded, rules=[rule(Remove(KEY))]) if "h1" in finding.problem.hosts]
    assert after(tried(wanted, loaded)) == {"group_vars/all.yml": ALL.replace(OFF, "")}


def test_a_file_that_reaches_a_host_without_the_finding_is_left_alone(fleet: Load) -> None:
    loaded = fleet(hosts=["h1", "h2", "h3", "h4", "h5"])
    (finding,) = lint(loaded, rules=[rule(Remove(KEY))])
    one = type(finding)(finding.rule, finding.severity, loaded.problem("h1", KEY, "x"), finding.edits, safe=True)
    assert refused(tried([one], loaded)) == "also reaches h2, h3, h4 and 1 more without this finding"


def test_a_host_that_could_not_be_judged_counts_as_one_without_the_finding(fleet: Load) -> None:
    loaded = fleet({"host_vars/h2.yml": "nonsense: 1"}, hosts=["h1", "h2"])
    assert refused(made(loaded)) == "also reaches h2 without this finding"


def test_what_a_weaker_file_repeats_goes_with_it(fleet: Load) -> None:
    found = made(fleet({"host_vars/h1.yml": OWN + OFF + "      port: 1\n"}))
    assert after(found) == {
        "group_vars/all.yml": ALL.replace(OFF, ""),
        "host_vars/h1.yml": OWN + "      port: 1\n",
    }


@pytest.mark.parametrize("below", ["graph: false", "graph: true # waive SGL201: why"])
def test_another_value_below_that_would_come_through_keeps_the_edit_away(fleet: Load, below: str) -> None:
    loaded = fleet({"group_vars/all.yml": ALL.replace("graph: true", below), "host_vars/h1.yml": OWN + OFF})
    wanted = [finding for finding in lint(loaded, rules=[rule(Remove(KEY))]) if finding.rule == "SGL201"]
    assert refused(tried(wanted, loaded)) == "is set in several files of h1: what is below would come through"


def test_one_host_that_cannot_be_put_right_keeps_no_other_back(fleet: Load) -> None:
    own = {
        "host_vars/h1.yml": OWN + OFF,
        "host_vars/h2.yml": "services: {k26: {args: {disable_cuda_graph: !!bool true}}}",
    }
    loaded = fleet({"group_vars/all.yml": ALL.replace(OFF, ""), **own}, hosts=["h1", "h2"])
    found = made(loaded, Set(KEY, value=False))
    assert after(found) == {"host_vars/h1.yml": OWN + OFF.replace("true", "false")}
    assert [why for _, why in found.refused] == ["holds more than a plain value"]


def test_a_new_name_that_another_file_has_keeps_the_edit_away(fleet: Load) -> None:
    loaded = fleet({"host_vars/h1.yml": OWN + "      tp_size: 2\n"})
    assert "several files" in refused(made(loaded, Rename(KEY, "tp_size")))


def test_an_override_is_not_in_a_file(fleet: Load) -> None:
    loaded = fleet(overrides={KEY: True})
    assert refused(made(loaded)) == f"comes from --data {KEY}: change it there"


def test_a_new_setting_goes_where_the_finding_is(fleet: Load) -> None:
    files = {"group_vars/all.yml": ALL.replace(OFF, ""), "host_vars/h1.yml": OWN + OFF}
    found = made(fleet(files), Set("services.k26.args.tp_size", 2))
    assert after(found) == {"host_vars/h1.yml": OWN + OFF + "      tp_size: 2\n"}


def test_a_setting_that_is_there_is_changed_where_it_is(fleet: Load) -> None:
    files = {"group_vars/all.yml": ALL.replace(OFF, ""), "host_vars/h1.yml": OWN + OFF}
    found = made(fleet(files), Set("services.k26.args.max_running_requests", 2))
    assert after(found) == {"group_vars/all.yml": ALL.replace(OFF, "").replace("64", "2")}


def test_the_edits_of_a_finding_are_made_all_or_none(fleet: Load) -> None:
    files = {"host_vars/h1.yml": OWN + "      max_running_requests: 8\n"}  # unlike the value below
    found = made(fleet(files), Set(KEY, value=False), Remove("services.k26.args.max_running_requests"))
    assert "several files" in refused(found)


def test_several_edits_and_findings_of_one_file_add_up(fleet: Load) -> None:
    loaded = fleet()
    other = service_rule("SGL298", "note")(rule(Set("services.k26.args.tp_size", 2)).check)
    one = rule(Remove(KEY), Rename("services.k26.args.max_running_requests", "max_queued_requests"))
    found = tried(lint(loaded, rules=[one, other]), loaded)
    assert after(found) == {
        "group_vars/all.yml": ALL.replace(OFF, "").replace("max_running", "max_queued") + "      tp_size: 2\n"
    }


def test_two_findings_may_want_the_same_setting_gone(fleet: Load) -> None:
    loaded = fleet()
    other = service_rule("SGL298", "note")(rule(Remove(KEY)).check)
    found = tried(lint(loaded, rules=[rule(Remove(KEY)), other]), loaded)
    assert len(found.fixed) == 2
    assert after(found) == {"group_vars/all.yml": ALL.replace(OFF, "")}


def test_a_setting_that_an_alias_repeats_is_not_changed(fleet: Load) -> None:
    text = ALL.replace("    args:\n", "    gpus: [0]\n    args: &shared\n")
    loaded = fleet({"group_vars/all.yml": text + "  k27:\n    gpus: [1]\n    args: {<<: *shared, port: 30001}\n"})
    assert not loaded.problems
    assert refused(made(loaded)) == "stands below the anchor &shared, which is used elsewhere too"


@pytest.mark.parametrize("edit", [Remove("services.k26.args.port"), Rename("services.k26.args.port", "x")])
def test_a_setting_that_is_written_nowhere_cannot_be_changed(fleet: Load, edit: Edit) -> None:
    assert refused(made(fleet(), edit)) == "is not written in any file"


def test_a_finding_whose_second_edit_cannot_be_made_changes_no_file(fleet: Load) -> None:
    """What h1's own file repeats stands behind an anchor there, so that the weaker file stays as it is, too."""
    own = f"services:\n  k26:\n    args: &x\n{OFF}  k27: {{gpus: [1], args: {{<<: *x, model_path: m, port: 1}}}}\n"
    loaded = fleet({"host_vars/h1.yml": own.replace("    args: &x", "    gpus: [0]\n    args: &x")})
    assert not loaded.problems
    findings = [one for one in lint(loaded, rules=[rule(Remove(KEY))]) if one.problem.key == KEY]
    assert refused(tried(findings, loaded)) == "stands below the anchor &x, which is used elsewhere too"


def test_hosts_alike_but_for_numbers_are_each_judged_by_their_own(fleet: Load) -> None:
    """h64 repeats the value below, which goes as well; another value below would come through for the others."""
    own = {f"host_vars/h{number}.yml": f"{OWN}{OFF}      max_running_requests: {number}\n" for number in (1, 2, 64)}
    loaded = fleet(own, hosts=["h1", "h2", "h64"])
    found = made(loaded, Remove("services.k26.args.max_running_requests"))
    assert [finding.problem.hosts for finding in found.fixed] == [("h64",)]
    assert [finding.problem.hosts for finding, _ in found.refused] == [("h1",), ("h2",)]
