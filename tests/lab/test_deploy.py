"""The main job, from an operator's chair."""

from lab import Host
from tests.lab.operator import Operator, answers, proven_releases, running_release


def test_four_hosts_reach_the_release_and_a_second_run_has_nothing_to_do(hosts: list[Host], operator: Operator) -> None:
    first = operator.deploy()
    assert first.status == 0, first.text
    releases = {running_release(host) for host in hosts}
    assert len(releases) == 1
    assert all(proven_releases(host) == [running_release(host)] for host in hosts)
    assert all(answers(host) for host in hosts)
    second = operator.deploy()
    assert second.status == 0, second.text
    assert "nothing to do on h1, h2, h3, h4" in second.text
    assert "Starting operation" not in second.text
