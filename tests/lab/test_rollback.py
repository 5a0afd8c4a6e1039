"""Going back by hand: `pyinfra INVENTORY rollback.py`."""

import json

from tests.lab.operator import Operator, answers, main_pid, running_release


def test_every_host_goes_back_though_the_settings_are_broken_and_the_secret_is_gone(deployed: Operator) -> None:
    hosts = deployed.lab.hosts
    before = {host.name: running_release(host) for host in hosts}
    deployed.change(description="another")
    assert deployed.deploy().status == 0
    assert all(running_release(host) != before[host.name] for host in hosts)
    (deployed.folder / "group_vars/all.yml").write_text("services: [no, {sense")
    deployed.environment.clear()
    look = deployed.run("--dry", script="rollback.py")
    assert look.status == 0, look.text
    assert f"k26: {running_release(hosts[0])} to {before['h1']}" in look.text
    assert all(running_release(host) != before[host.name] for host in hosts)  # it only looked
    done = deployed.run(script="rollback.py")
    assert done.status == 0, done.text
    for host in hosts:
        assert done.verdict(host.name).startswith(f"back  runs k26 {before[host.name]}"), done.text
        assert running_release(host) == before[host.name]
        assert answers(host)


def test_a_host_that_has_nothing_to_go_back_to_is_left_as_it_is(deployed: Operator) -> None:
    first = deployed.lab.hosts[0]
    deployed.lab.reset(first)
    first.mark_used()
    deployed.hosts(["h1"])
    assert deployed.deploy().status == 0
    pid, release = main_pid(first), running_release(first)
    done = deployed.run(script="rollback.py")
    assert done.status == 1
    assert "h1: there is nothing to go back to" in done.text
    assert (main_pid(first), running_release(first)) == (pid, release)
    proven = json.loads(first.read("/var/lib/sglang-fleet/services/k26/proven.json"))
    assert [entry["release"] for entry in proven["releases"]] == [release]
