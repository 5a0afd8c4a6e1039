"""Whether there is room for what goes back beside the other services of its host."""

from collections.abc import Sequence
from typing import Any

import pytest

from sglang_fleet.fitting import in_turn, no_room

Gpus = Sequence[int] | None


def service(name: str, *, old: Gpus, new: Gpus, ports: tuple[int, int] = (0, 0), **more: Any) -> dict[str, Any]:
    """A service that runs release new-NAME and goes back to old-NAME; a port of its own where none is given."""
    own = 30000 + sum(name.encode())
    kept = zip(("old", "new"), (old, new), ports, strict=True)
    return {
        "service": name,
        "unit_name": f"sglang-{name}.service",
        "installed": f"new-{name}",
        "running": f"new-{name}",
        "previous": f"old-{name}",
        "releases": [
            {"release": f"{age}-{name}", "port": port or own, "gpus": gpus and list(gpus)} for age, gpus, port in kept
        ],
        **more,
    }


def back(*services: dict[str, Any], to: str = "") -> list[dict[str, Any]]:
    return [{**one, "to": to} for one in services]


def order(*going: dict[str, Any]) -> list[str]:
    return [one["service"] for one in in_turn(back(*going))]


STOP = "; stop sglang-code.service first, or name another release with release=ID"


@pytest.mark.parametrize(
    ("old", "new", "ports", "said"),
    [
        ((0, 1, 2, 3), (2, 3, 4), (0, 0), "it shares GPU 2, 3 with code"),
        (None, (4,), (0, 0), "chat uses all GPUs, and code has none left"),
        ((0,), None, (0, 0), "code uses all GPUs, and chat has none left"),
        ((0,), (1,), (30009, 30009), "its port is code's port too: 30009"),
        ((), (), (30009, 30009), "its port is code's port too: 30009"),
    ],
)
def test_what_another_service_has_now_is_not_gone_back_to(
    old: Gpus, new: Gpus, ports: tuple[int, int], said: str
) -> None:
    chat = service("chat", old=old, new=(7,), ports=(ports[0], 0))
    code = service("code", old=(6,), new=new, ports=(0, ports[1]))
    assert no_room([chat, code], back(chat)) == (
        f"chat cannot go back to release old-chat beside release new-code of code: {said}{STOP}"
    )


def test_the_release_that_was_asked_for_is_the_one_that_is_compared() -> None:
    chat = service("chat", old=(0,), new=(1,))
    code = service("code", old=(), new=(1,))
    assert "release new-chat beside release new-code of code: it shares GPU 1" in no_room(
        [chat, code], back(chat, to="new-chat")
    )


@pytest.mark.parametrize(
    "more",
    [
        {"running": ""},  # it is stopped
        {"running": "pruned"},  # nobody knows any more what it takes
        {"running": None, "installed": "old-code"},  # systemd did not say what runs
    ],
)
def test_what_another_service_does_not_have_is_free(more: dict[str, Any]) -> None:
    chat = service("chat", old=(0, 1), new=(0,))
    assert no_room([chat, service("code", old=(2,), new=(1,))], back(chat))
    assert not no_room([chat, service("code", old=(2,), new=(1,), **more)], back(chat))


@pytest.mark.parametrize(("old", "new"), [((), (0,)), ((), None), ((0,), ()), (None, ())])
def test_a_service_on_the_cpu_is_in_nobodys_way(old: Gpus, new: Gpus) -> None:
    chat, code = service("chat", old=old, new=(7,)), service("code", old=(), new=new)
    assert not no_room([chat, code], back(chat))


@pytest.mark.parametrize(
    "more",
    [
        {"previous": "found:1"},  # a unit by hand
        {"pending": "a9"},
        {"going_on": {"activation": "a9", "mode": "return"}},
    ],
)
def test_where_nobody_knows_what_a_service_will_take_nothing_is_said(more: dict[str, Any]) -> None:
    chat, code = service("chat", old=(0, 1), new=(0,), **more), service("code", old=(2,), new=(1,))
    assert not no_room([chat, code], back(chat))
    assert not no_room([chat, code], back(chat, code))


def test_two_that_go_back_are_compared_where_they_will_be() -> None:
    chat, code = service("chat", old=(0, 1), new=(0,)), service("code", old=(2,), new=(1, 2))
    assert no_room([chat, code], back(chat))
    assert not no_room([chat, code], back(chat, code))
    code = service("code", old=(1,), new=(2,))
    assert not no_room([chat, code], back(chat))
    assert no_room([chat, code], back(chat, code)) == (
        "code cannot go back to release old-code beside release old-chat of chat, which goes back as well:"
        " it shares GPU 1 with chat; name a release of one of them with release=ID"
    )


def test_who_has_what_another_goes_back_to_goes_first() -> None:
    chat, code = service("chat", old=(0, 1), new=(0,)), service("code", old=(2,), new=(1, 2))
    assert order(chat, code) == order(code, chat) == ["code", "chat"]
    assert [one["after"] for one in in_turn(back(chat, code))] == [[], ["code"]]
    code["running"] = ""
    assert order(chat, code) == ["chat", "code"]
    chat = service("chat", old=(0,), new=(0,), ports=(30001, 30003))
    assert order(chat, service("code", old=(1,), new=(1,), ports=(30002, 30001))) == ["code", "chat"]


def test_who_needs_nothing_of_another_keeps_its_place() -> None:
    assert order(*(service(name, old=(place,), new=(place,)) for place, name in enumerate("cab"))) == ["c", "a", "b"]
    assert not in_turn([])


def test_services_that_have_each_others_gpus_cannot_begin() -> None:
    chat, code = service("chat", old=(0,), new=(1,)), service("code", old=(1,), new=(0,))
    other = service("other", old=(2,), new=(0, 2))
    assert no_room([chat, code, other], back(chat, code, other)) == (
        "chat, code would each go back to what another of them still has, so that none can go first: stop one of them"
        " first, such as sglang-chat.service, which is started again"
    )
    chat["running"] = ""
    assert not no_room([chat, code, other], back(chat, code, other))
    turns = order(chat, code, other)
    assert turns.index("chat") > max(turns.index("code"), turns.index("other"))
