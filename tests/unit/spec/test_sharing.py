"""What two services of one host would both take."""

from collections.abc import Sequence

import pytest

from sglang_fleet.spec.sharing import ALL_GPUS, GPUS, PORT, Clash, Taken, clashes


def between(one: Sequence[int] | None, other: Sequence[int] | None, *, port: int = 2) -> list[Clash]:
    return list(clashes(Taken("a", 1, one), Taken("b", port, other)))


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ((0, 3, 1), (1, 2, 3), Clash(GPUS, "b", "shares GPU 1, 3 with a")),
        (None, (0,), Clash(ALL_GPUS, "a", "a uses all GPUs, and b has none left")),
        ((0,), None, Clash(ALL_GPUS, "b", "b uses all GPUs, and a has none left")),
        (None, None, Clash(ALL_GPUS, "b", "b uses all GPUs, and a has none left")),
    ],
)
def test_gpus_are_one_services(one: Sequence[int] | None, other: Sequence[int] | None, clash: Clash) -> None:
    assert between(one, other) == [clash]


@pytest.mark.parametrize(("one", "other"), [((0, 1), (2,)), ((), (0,)), ((), None), (None, ()), ((), ())])
def test_other_gpus_and_none_are_free(one: Sequence[int] | None, other: Sequence[int] | None) -> None:
    assert between(one, other) == []


def test_a_port_is_one_services_also_on_the_cpu() -> None:
    assert between((), None, port=1) == [Clash(PORT, "b", "is a's port too: 1")]
