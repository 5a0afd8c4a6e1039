"""In which waves replicas change."""

import pytest

from sglang_fleet.rollout import Outcome, Wave, cut, pause_problem
from tests.unit.rollout.fleets import fleet, replicas, shown, up_to

TEN = replicas(" ".join(f"h{number}" for number in range(1, 11)))
FOUR = TEN[:4]
QUARTERS = up_to(1, 3)


# --- order and shares


def test_replicas_go_in_the_order_given_and_the_first_wave_is_the_canary() -> None:
    assert shown(cut(TEN, targets=QUARTERS)) == "h1! | h2 h3 | h4 h5 h6 h7 h8 h9 h10"


def test_where_all_go_at_once_nobody_is_a_canary() -> None:
    assert shown(cut(FOUR, targets=up_to())) == "h1 h2 h3 h4"


def test_nothing_to_do_makes_no_wave() -> None:
    assert cut((), targets=QUARTERS) == ()


def test_waves_are_numbered_and_say_whether_they_are_a_canary() -> None:
    assert [str(wave) for wave in cut(FOUR, targets=up_to(1, 2))] == [
        "wave 1 of 3 (canary)",
        "wave 2 of 3",
        "wave 3 of 3",
    ]


def test_a_wave_names_the_hosts_of_its_replicas_in_the_order_of_their_ranks() -> None:
    (wave,) = cut(replicas("a+b c d+e"), targets=up_to())
    assert wave.hosts == ("a", "b", "c", "d", "e")


# --- canaries


def test_named_canaries_go_first_in_the_order_they_are_named_and_count_in_the_shares() -> None:
    assert shown(cut(TEN[:6], targets=up_to(1, 3), canary=["h5", "h2"])) == "h5 h2! | h1 | h3 h4 h6"


def test_a_wave_that_the_canaries_have_filled_is_left_out() -> None:
    assert shown(cut(FOUR, targets=up_to(1, 2), canary=["h3"])) == "h3! | h1 | h2 h4"


def test_a_canary_that_is_a_host_of_a_replica_takes_the_whole_replica_along() -> None:
    assert shown(cut(replicas("a b+c d"), targets=up_to(), canary=["c"])) == "b+c! | a d"


def test_a_replica_is_a_canary_once_however_it_is_named() -> None:
    assert shown(cut(replicas("a b+c"), targets=up_to(), canary=["b", "b+c", "c"])) == "b+c! | a"


def test_a_canary_that_has_nothing_to_do_is_passed_over_and_the_first_wave_takes_its_place() -> None:
    assert shown(cut(FOUR, targets=up_to(1), canary=["elsewhere"])) == "h1! | h2 h3 h4"


def test_when_only_the_canaries_change_they_are_one_wave() -> None:
    assert shown(cut(FOUR[:2], targets=up_to(1), canary=["h2", "h1"])) == "h2 h1!"


# --- resuming


def test_a_resumed_rollout_goes_on_with_the_shares_of_all() -> None:
    assert shown(cut(TEN[1:], targets=QUARTERS, done=1)) == "h2 h3 | h4 h5 h6 h7 h8 h9 h10"
    assert shown(cut(TEN[3:], targets=QUARTERS, done=3)) == "h4 h5 h6 h7 h8 h9 h10"


def test_a_resumed_rollout_fills_the_wave_that_was_not_full() -> None:
    assert shown(cut(TEN[2:], targets=QUARTERS, done=2)) == "h3 | h4 h5 h6 h7 h8 h9 h10"


def test_a_rollout_that_is_resumed_before_its_canary_was_full_still_has_one() -> None:
    assert shown(cut(TEN[2:5], targets=up_to(3), done=2)) == "h3! | h4 h5"


def test_a_resumed_rollout_does_not_make_a_canary_of_the_wave_after_the_named_one() -> None:
    assert shown(cut(TEN[1:5], targets=up_to(3), done=1, canary=["h1"])) == "h2 h3 | h4 h5"


def test_a_named_canary_that_is_not_done_yet_goes_first_when_resumed() -> None:
    assert shown(cut(TEN[1:5], targets=up_to(3), done=1, canary=["h1", "h4"])) == "h4! | h2 | h3 h5"


# --- max_down


def test_no_wave_takes_more_down_than_may_be() -> None:
    assert shown(cut(TEN[:7], targets=up_to(1), max_down=2)) == "h1! | h2 h3 | h4 h5 | h6 h7"


def test_several_canaries_go_in_waves_of_their_own_when_they_may_not_all_be_down() -> None:
    assert shown(cut(FOUR, targets=up_to(), canary=["h4", "h3"], max_down=1)) == "h4! | h3! | h1 | h2"


@pytest.mark.parametrize("max_down", [0, 1])
def test_at_least_one_may_always_be_down_or_nothing_could_ever_change(max_down: int) -> None:
    assert shown(cut(FOUR[:2], targets=up_to(), max_down=max_down)) == "h1! | h2"
    known = {"h2": Outcome.REFUSED}
    assert shown(cut(FOUR[:3], targets=up_to(), max_down=max_down, known=known)) == "h1 h2! | h3"


def test_f42_those_that_are_down_already_take_no_room() -> None:
    assert shown(cut(FOUR, targets=up_to(), down=["h2", "h3"], max_down=3)) == "h1 h2 h3! | h4"


def test_f42_where_there_is_no_room_those_that_are_down_go_first_and_one_of_them_alone() -> None:
    assert shown(cut(TEN[:6], targets=up_to(1), down=["h3", "h4", "h6"], max_down=2)) == "h3! | h4 h6 | h1 | h2 h5"
    assert shown(cut(TEN[:5], targets=up_to(1), down=["h3", "h4", "h5"], max_down=1)) == "h3! | h4 h5 | h1 | h2"


def test_f42_those_that_are_down_go_before_the_named_canary_when_it_has_no_room() -> None:
    assert shown(cut(FOUR, targets=up_to(), canary=["h1"], down=["h3", "h4"], max_down=1)) == "h3! | h4 | h1! | h2"


def test_without_max_down_those_that_are_down_keep_their_place() -> None:
    assert shown(cut(FOUR, targets=up_to(1), down=["h4"])) == "h1! | h2 h3 h4"


def test_what_is_down_outside_of_the_waves_takes_room() -> None:
    assert shown(cut(FOUR, targets=up_to(), down=["elsewhere"], max_down=2)) == "h1! | h2 | h3 | h4"


def test_one_that_is_down_and_will_not_be_tried_makes_no_room() -> None:
    known = {"h1": Outcome.UNREACHABLE}
    assert shown(cut(FOUR, targets=up_to(), max_down=2, known=known)) == "h1 h2! | h3 | h4"


def test_one_that_is_refused_serves_on_and_takes_no_room() -> None:
    assert shown(cut(FOUR, targets=up_to(), max_down=2, known={"h1": Outcome.REFUSED})) == "h1 h2 h3! | h4"


def test_where_nobody_can_make_room_the_waves_are_cut_all_the_same() -> None:
    assert shown(cut(FOUR[:2], targets=up_to(), down=["x", "y"], max_down=1)) == "h1! | h2"


# --- left out


def test_a_skipped_replica_is_left_out_of_the_waves_and_of_the_shares() -> None:
    known = {"h1": Outcome.SKIPPED}
    assert shown(cut(FOUR, targets=lambda total: [1, total], known=known)) == "h2! | h3 h4"


def test_a_replica_is_left_out_when_one_of_its_hosts_is_skipped() -> None:
    assert shown(cut(replicas("a+b c"), targets=up_to(), known={"b": Outcome.SKIPPED})) == "c"


def test_a_skipped_canary_keeps_its_place_so_that_it_is_missed() -> None:
    assert shown(cut(FOUR, targets=up_to(), canary=["h2"], known={"h2": Outcome.SKIPPED})) == "h2! | h1 h3 h4"


def test_a_host_that_is_known_to_fail_keeps_its_place() -> None:
    assert shown(cut(FOUR, targets=up_to(1), known={"h1": Outcome.UNREACHABLE})) == "h1! | h2 h3 h4"


# --- where a pause can be

ONE: tuple[Wave, ...] = fleet("a b")


@pytest.mark.parametrize(
    ("waves_of", "pause_after"),
    [
        (fleet("a! | b"), ""),
        (fleet("a! | b"), "canary"),
        (fleet("a! | b"), "2"),
        (fleet("a"), "canary"),
        ((), "canary"),
        ((), "7"),
    ],
)
def test_a_pause_that_can_be_made_is_no_problem(waves_of: tuple[Wave, ...], pause_after: str) -> None:
    assert pause_problem(waves_of, pause_after) == ""


@pytest.mark.parametrize(
    ("pause_after", "why"),
    [
        ("canary", "no canary to pause after"),
        ("2", "no wave 2 to pause after: this rollout has 1"),
        ("0", "not after '0'"),
        ("kanary", "not after 'kanary'"),
    ],
)
def test_a_pause_that_would_never_come_is_a_problem_beforehand(pause_after: str, why: str) -> None:
    assert why in pause_problem(ONE, pause_after)
