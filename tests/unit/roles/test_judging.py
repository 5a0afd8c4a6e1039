"""What the rules say before anything changes, and what the settings waive."""

from dataclasses import replace
from pathlib import Path

import pytest

from roles.judging import judge_hosts, judge_settings
from roles.wanted import want
from sglang_fleet.addresses import lock_reader
from sglang_fleet.checks import Refusal
from sglang_fleet.observe import HostState
from sglang_fleet.spec import Loaded, load
from tests.factories import NOTHING_INSTALLED, host_state

SETTINGS = """\
cuda:
  version: "13.0"
  minimum_driver: 580{minimum}
sglang: {{version: 0.5.23, requirements: lock.txt}}
services:
  k26:
    args:
      model_path: /models/k2
      grpc_port: 40000{grpc}
      watchdog_timeout: 60{watchdog}
    secrets: {{api_key: {{env: K26_API_KEY}}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "lock.txt").write_text("sglang==0.5.23\n")
    monkeypatch.setenv("K26_API_KEY", "no-secret-of-a-test")
    return tmp_path


def loaded(folder: Path, *, minimum: str = "", grpc: str = "", watchdog: str = "") -> Loaded:
    (folder / "group_vars/all.yml").write_text(SETTINGS.format(minimum=minimum, grpc=grpc, watchdog=watchdog))
    return load(folder=folder, hosts={"h1": [], "h2": []}, overrides={})


def test_what_cannot_work_is_an_error_of_the_settings_with_its_place(folder: Path) -> None:
    errors, hint = judge_settings(loaded(folder), lock=lock_reader(folder))
    (error,) = errors
    assert (error.key, error.hosts, error.line) == ("services.k26.args.grpc_port", ("h1", "h2"), 9)
    assert error.message == "SGLang does not start with it and api_key [SGL708]"
    assert hint == "1 warning in the settings: `sglang-fleet lint` shows them"


def test_a_lock_file_of_another_release_is_refused_before_a_host_builds_it(folder: Path) -> None:
    (folder / "lock.txt").write_text("sglang==0.5.22\n")
    errors, _ = judge_settings(loaded(folder, grpc=" # waive SGL708: patched"), lock=lock_reader(folder))
    assert [(error.key, error.line) for error in errors] == [("sglang.requirements", 4)]
    assert errors[0].message.startswith("pins sglang 0.5.22, and sglang.version is 0.5.23")


def test_what_the_settings_waive_is_neither_an_error_nor_counted(folder: Path) -> None:
    one = loaded(folder, grpc=" # waive SGL708: patched", watchdog=" # waive SGL605: measured")
    assert judge_settings(one, lock=lock_reader(folder)) == ([], "")


def test_settings_that_cannot_be_used_are_not_told_twice(folder: Path) -> None:
    (folder / "group_vars/all.yml").write_text("cuda: 1\n")
    one = load(folder=folder, hosts={"h1": []}, overrides={})
    assert one.problems
    assert judge_settings(one, lock=lock_reader(folder)) == ([], "")


def old_driver() -> HostState:
    return host_state({"k26": NOTHING_INSTALLED}, driver="570.1", listeners={30000: ()})


@pytest.mark.parametrize(
    ("minimum", "rules"), [("", ["SGL803"]), (" # waive SGL803: CUDA's compatibility package is there", [])]
)
def test_a_waiver_beside_a_setting_holds_for_what_hosts_show_about_it(
    folder: Path, minimum: str, rules: list[str]
) -> None:
    one = loaded(folder, minimum=minimum)
    seen, judged = judge_hosts(one, want(one, folder=folder), {"h1": old_driver()}, lock=lock_reader(folder))
    assert list(seen) == ["h1"]
    assert [refusal.rule for refusal in judged["h1"].refusals] == rules


def test_a_host_that_could_not_be_asked_is_refused_and_not_seen(folder: Path) -> None:
    one = loaded(folder)
    refusal = Refusal("the probe failed: lost")
    seen, judged = judge_hosts(
        one, want(one, folder=folder), {"h1": refusal, "h2": replace(old_driver(), euid=1000)}, lock=lock_reader(folder)
    )
    assert list(seen) == ["h2"]
    assert judged["h1"].refusals == (refusal,)
    assert [found.rule for found in judged["h2"].refusals] == ["SGL801"]


def test_one_machine_under_two_names_is_refused_before_it_is_changed_as_two(folder: Path) -> None:
    one = loaded(folder)
    state = replace(old_driver(), driver="580.1", machine_id="a" * 32, boot_id="b" * 36)
    answers = {"h1": state, "h2": state}
    _, judged = judge_hosts(one, want(one, folder=folder), answers, lock=lock_reader(folder))
    assert [refusal.what for refusal in judged["h1"].refusals] == [
        "it is the same machine as h2 (machine-id aaaaaaaa...)"
    ]
    assert [refusal.what for refusal in judged["h2"].refusals] == [
        "it is the same machine as h1 (machine-id aaaaaaaa...)"
    ]
