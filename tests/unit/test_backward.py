"""What each host would go back to."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sglang_fleet.backward import Way, ways


def told(
    installed: str = "bb22", previous: str = "aa11", *, nodes: Sequence[str] = (), service: str = "k26", **more: Any
) -> dict[str, Any]:
    """What a host says of a service; a release of several nodes has a common id without the last letter."""

    def replica(release: str) -> Mapping[str, Any] | None:
        return {"hosts": list(nodes), "id": f"common-{release[:2]}"} if nodes else None

    known = [name for name in dict.fromkeys(["aa11", "bb22", previous, installed]) if name]
    return {
        "service": service,
        "unit_name": f"sglang-{service}.service",
        "installed": installed,
        "running": installed,
        "previous": previous,
        "replica": replica(installed),
        "releases": [{"release": name, "proven": True, "replica": replica(name)} for name in known],
        **more,
    }


def goes(way: Way) -> list[str]:
    return [one["to"] or one["previous"] for one in way.services]


def test_each_host_goes_to_what_ran_before_and_one_with_nothing_before_is_left() -> None:
    replicas, found = ways({"h1": [told()], "h2": [told(previous="")]}, hosts=["h1", "h2"])
    assert [replica.name for replica in replicas] == ["h1", "h2"]
    assert goes(found["h1"]) == ["aa11"]
    assert found["h2"] == Way(refused="there is nothing to go back to")


def test_where_all_was_pruned_that_is_said() -> None:
    _, found = ways({"h1": [told(previous="", gone="release aa11 was pruned")]}, hosts=["h1"])
    assert found["h1"] == Way(refused="there is nothing to go back to: release aa11 was pruned")


@pytest.mark.parametrize("left", [{"pending": "a9"}, {"going_on": {"activation": "a9", "mode": "return"}}])
def test_one_on_which_an_earlier_run_has_left_something_going_on_is_seen_to_its_end(left: dict[str, Any]) -> None:
    _, found = ways({"h1": [told(previous="", **left)]}, hosts=["h1"])
    assert (found["h1"].refused, len(found["h1"].services)) == ("", 1)


def test_a_release_that_is_named_by_its_beginning_is_looked_for_on_every_host() -> None:
    hosts = {
        "h1": [told("cc33", "bb22")],
        "h2": [told("aa11", "bb22")],
        "h3": [told("cc33", "dd44", releases=[{"release": "cc33", "proven": True}])],
    }
    _, found = ways(hosts, hosts=list(hosts), release="aa")
    assert goes(found["h1"]) == ["aa11"]
    assert found["h2"] == Way()  # it runs it
    assert found["h3"].refused == "it has no release aa"


@pytest.mark.parametrize(
    ("releases", "why"),
    [
        (["aa11", "aa12"], "aa is the beginning of aa11, aa12"),
        (["aa11"], "release aa11 of k26 was never proven here"),
    ],
)
def test_what_cannot_be_meant_is_refused(releases: list[str], why: str) -> None:
    kept = [{"release": name, "proven": False} for name in releases]
    _, found = ways({"h1": [told(releases=kept)]}, hosts=["h1"], release="aa")
    assert found["h1"].refused == why


def test_nodes_go_back_together_or_not_at_all() -> None:
    nodes = ("h1", "h2")
    replicas, found = ways({name: [told(nodes=nodes)] for name in nodes}, hosts=nodes)
    assert [replica.hosts for replica in replicas] == [nodes]
    assert goes(found["h1"]) == goes(found["h2"]) == ["aa11"]

    _, found = ways({"h1": [told(nodes=nodes)], "h2": [told(previous="", nodes=nodes)]}, hosts=nodes)
    assert found["h1"].refused == "h2 of its replica of k26 cannot go back with it"

    _, found = ways({"h1": [told(nodes=nodes)]}, hosts=["h1"])  # the other is not in this run
    assert found["h1"].refused == "h2 of its replica of k26 cannot go back with it"


def test_nodes_that_would_part_are_asked_for_a_release() -> None:
    nodes = ("h1", "h2")
    hosts = {"h1": [told("bb22", "aa11", nodes=nodes)], "h2": [told("aa12", "zz00", nodes=nodes)]}
    _, found = ways(hosts, hosts=nodes)
    assert all("different releases" in found[name].refused for name in nodes)


def test_a_node_that_is_there_goes_along_when_another_is_not() -> None:
    nodes = ("h1", "h2")
    hosts = {"h1": [told("aa11", "zz00", nodes=nodes)], "h2": [told("bb22", "aa12", nodes=nodes)]}
    kept = [{"release": "aa12", "proven": True, "replica": {"hosts": list(nodes), "id": "common-aa"}}]
    hosts["h2"][0]["releases"] = kept
    _, found = ways(hosts, hosts=nodes, release="aa11")
    assert (goes(found["h1"]), goes(found["h2"])) == (["aa11"], ["aa12"])


def test_a_replica_that_runs_the_release_on_every_node_has_nothing_to_do() -> None:
    nodes = ("h1", "h2")
    hosts = {name: [told("aa11", "zz00", nodes=nodes)] for name in nodes}
    _, found = ways(hosts, hosts=nodes, release="aa11")
    assert found == {"h1": Way(), "h2": Way()}


def on_gpus(service: str, *, before: Sequence[int], now: Sequence[int], **more: Any) -> dict[str, Any]:
    """A service that has aa11 to go back to and runs bb22, each on GPUs of its own."""
    found = told(service=service, **more)
    port = 30000 + len(service)
    for kept, gpus in zip(found["releases"], (before, now), strict=True):
        kept |= {"port": port, "gpus": list(gpus)}
    return found


def test_a_host_on_which_another_service_has_the_gpus_by_now_is_left_with_its_replica() -> None:
    nodes = ("h1", "h2")
    chat = on_gpus("chat", before=[0, 1], now=[0], nodes=nodes)
    _, found = ways({"h1": [chat, on_gpus("code1", before=[], now=[1], previous="")], "h2": [chat]}, hosts=nodes)
    assert "chat cannot go back to release aa11 beside release bb22 of code1: it shares GPU 1" in found["h1"].refused
    assert found["h2"].refused == "h1 of its replica of chat cannot go back with it"


def test_services_of_a_host_go_back_in_the_order_in_which_they_find_room() -> None:
    host = [on_gpus("chat", before=[0, 1], now=[0]), on_gpus("code1", before=[2], now=[1, 2])]
    _, found = ways({"h1": host}, hosts=["h1"])
    assert [(one["service"], one["after"]) for one in found["h1"].services] == [("code1", []), ("chat", ["code1"])]


def test_one_that_is_there_already_is_compared_where_it_is() -> None:
    there = on_gpus("code1", before=[1], now=[2], installed="aa11")
    _, found = ways({"h1": [on_gpus("chat", before=[0, 1], now=[0]), there]}, hosts=["h1"], release="aa11")
    assert "beside release aa11 of code1: it shares GPU 1" in found["h1"].refused
