"""What a run is asked for, by `sglang-fleet` or by pyinfra's `--data`."""

import sys
from pathlib import Path

import pytest

from roles.options import ALSO_KNOWN, BACKWARD, FORWARD, NoOption, Options, check_pause, check_release, with_data
from sglang_fleet.variables import gather

RELEASE = "4f0c2a9d1b7e63a8"


def test_data_names_what_pyinfra_is_asked_for() -> None:
    assert with_data(Options(), {"pause_after": "canary", "resume": True}) == Options(pause_after="canary", resume=True)
    assert with_data(Options(), {"release": RELEASE}, takes=BACKWARD) == Options(release=RELEASE)


def test_data_goes_before_what_was_asked_for_and_leaves_the_rest() -> None:
    asked = Options(pause_after="canary", resume=True)
    assert with_data(asked, {"pause_after": 2, "cuda.version": "13.0"}) == Options(pause_after="2", resume=True)


@pytest.mark.parametrize("value", ["canary", "1", 1, "12"])
def test_a_run_pauses_after_the_canary_or_a_wave(value: object) -> None:
    assert check_pause(value) == str(value)


@pytest.mark.parametrize("value", ["canaries", "", "0", 0, -1, "1.5", True, ["canary"], None])
def test_a_pause_that_makes_no_sense_is_told_with_what_to_write(value: object) -> None:
    with pytest.raises(NoOption, match="canary, or the number of a wave"):
        check_pause(value)


@pytest.mark.parametrize("value", ["4f0", "4F0C2A9D", "../../etc", "", "latest", True, None, "4f0c 2a9d"])
def test_a_release_that_can_be_none_is_told_with_where_to_look(value: object) -> None:
    with pytest.raises(NoOption, match="sglang-fleet history"):
        check_release(value)


@pytest.mark.parametrize("value", ["yes", 1, "", None])
def test_resume_is_true_or_false(value: object) -> None:
    with pytest.raises(NoOption, match="true or false"):
        with_data(Options(), {"resume": value})


@pytest.mark.parametrize("typed", ["0012345678901234", "1234e56789012345"])
@pytest.mark.parametrize("words", [["--data", "release={}"], ["--data=release={}"]])
def test_a_release_that_pyinfra_takes_for_a_number_is_the_one_that_was_typed(
    monkeypatch: pytest.MonkeyPatch, typed: str, words: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pyinfra", "prod.py", "rollback.py", *(word.format(typed) for word in words)])
    assert check_release(float(typed)) == typed


def test_an_option_of_the_other_job_is_refused() -> None:
    with pytest.raises(NoOption, match=r"only rollback\.py knows it"):
        with_data(Options(), {"release": RELEASE}, takes=FORWARD)
    with pytest.raises(NoOption, match=r"only deploy\.py knows it"):
        with_data(Options(), {"resume": True}, takes=BACKWARD)


def test_a_value_that_may_be_a_secret_is_not_repeated() -> None:
    with pytest.raises(NoOption) as caught:
        check_pause("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH")
    assert "abcdefghijkl" not in str(caught.value)


def test_options_are_no_unknown_settings(tmp_path: Path) -> None:
    found = gather(folder=tmp_path, hosts={"h1": ()}, overrides=dict.fromkeys(ALSO_KNOWN, "1"), also_known=ALSO_KNOWN)
    assert found.problems == []
