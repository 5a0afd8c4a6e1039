"""Each way in which SGLang fails, provoked for real: seen soon, named in an operator's words, and left behind.

A failed change of the base service ends on its proven release again, which takes a real start. A service that is new
on the host has none, so it is taken away instead, while the base service serves on: most ways to fail are shown on such
a one, in one piece, since they are the server's and not the return's. What any host can show is in test_anywhere.py.
"""

import json
import re
from collections.abc import Iterator

import pytest

from lab import Lab
from tests.lab.incidents import reasons
from tests.lab.operator import Ran, wait_for
from tests.real.hosts import memory
from tests.real.hosts.fleet import ANSWER, MODEL, RealFleet
from tests.real.hosts.happening import (
    SECOND,
    SECOND_PORT,
    SECOND_UNIT,
    Deploy,
    activations,
    forget,
    meanwhile,
    result,
    stranger,
    with_second,
)

pytestmark = pytest.mark.lab_only("they make servers fail, and hold ports and memory")

ENDS_WITHIN = 300
STRANGE_MODEL = "/srv/models/strange"
TWO_RANKS = {"SGLANG_CPU_OMP_THREADS_BIND": "0|1"}


@pytest.fixture(autouse=True)
def nothing_is_left(real_lab: Lab) -> Iterator[None]:
    """The second service is gone, also after a test that failed."""
    yield
    forget(real_lab.hosts[0])


def went_back(fleet: RealFleet, ran: Ran, *, to: str | None) -> str:
    """Check that the base service runs its proven release again and answers; the verdict's whole text."""
    host = fleet.hosts[0]
    assert ran.status == 1, ran.text
    assert ran.verdict("h1").startswith("RETURNED"), ran.text
    assert fleet.release(host) == to == fleet.proven(host)[-1]
    assert fleet.complete(host) == ANSWER
    return reasons(ran.text)


def taken_away(fleet: RealFleet, ran: Ran) -> str:
    """Check that nothing is left of the second service, while the base one never stopped; the verdict's whole text."""
    host = fleet.hosts[0]
    assert ran.status == 1, ran.text
    assert result(host, SECOND)["outcome"] == "removed", ran.text
    assert fleet.processes(host, SECOND_UNIT) == {}
    assert host.run(f"pgrep -f -- '--port[ ]{SECOND_PORT}'", check=False).stdout == ""
    assert host.run(f"systemctl cat {SECOND_UNIT}", check=False).returncode != 0
    assert fleet.complete(host) == ANSWER
    return reasons(ran.text)


def names_the_dead(said: str) -> bool:
    """Whether a killed scheduler is named: by SGLang's main process, or by a peer that was sooner to notice."""
    return bool(re.search(r"its process (scheduler_1|Rank 1 scheduler) was killed by signal 9|closed by peer", said))


def soon(fleet: RealFleet, service: str = SECOND) -> None:
    """Check that it was the server's end that was seen, and no deadline's: how soon hangs on what else is going on."""
    assert re.match(r"(exited with status|was killed by signal) \d+ after ", result(fleet.hosts[0], service)["reason"])


def test_a_flag_that_sglang_does_not_know(serving: RealFleet) -> None:
    serving.write(with_second(serving, extra_args=["--no-such-flag"]))
    said = taken_away(serving, serving.deploy())
    assert "exited with status 2" in said
    assert "unrecognized arguments: --no-such-flag" in said
    soon(serving)


def test_a_choice_that_sglang_does_not_have(serving: RealFleet) -> None:
    serving.write(with_second(serving, extra_args=["--load-format=nonsense"]))
    said = taken_away(serving, serving.deploy())
    assert "exited with status 2" in said
    assert "--load-format: invalid choice: 'nonsense'" in said
    soon(serving)


def test_a_model_that_is_not_on_the_host_is_seen_before_anything_stops(serving: RealFleet) -> None:
    host = serving.hosts[0]
    pid = serving.processes(host)["main"]
    serving.write(serving.settings(args={"model_path": "/srv/models/none"}))
    ran = serving.deploy()
    assert ran.status == 1, ran.text
    assert "/srv/models/none" in ran.text
    assert serving.processes(host)["main"] == pid


def test_a_model_that_sglang_does_not_know(serving: RealFleet) -> None:
    host = serving.hosts[0]
    config = json.loads(host.read(f"{MODEL}/config.json")) | {"architectures": ["NoSuchForCausalLM"]}
    host.run(f"cp -r {MODEL} {STRANGE_MODEL}")
    try:
        host.write(f"{STRANGE_MODEL}/config.json", json.dumps(config))
        serving.write(with_second(serving, args={"model_path": STRANGE_MODEL}))
        said = taken_away(serving, serving.deploy())
    finally:
        host.run(f"rm -r {STRANGE_MODEL}")
    assert "NoSuchForCausalLM" in said
    soon(serving)


def test_a_port_in_use_is_seen_before_anything_stops(serving: RealFleet) -> None:
    host = serving.hosts[0]
    pid = serving.processes(host)["main"]
    serving.write(serving.settings(args={"port": 30005}))
    with stranger(host, 30005):
        ran = serving.deploy()
    assert ran.status == 1, ran.text
    assert "30005" in ran.text
    assert "stranger.service" in ran.text
    assert serving.processes(host)["main"] == pid
    assert serving.complete(host) == ANSWER


def test_a_port_that_is_taken_while_the_server_starts_is_seen_before_sglang_sees_it(serving: RealFleet) -> None:
    host = serving.hosts[0]
    serving.write(with_second(serving))

    def taken(deploy: Deploy) -> None:
        deploy.signal("main", unit=SECOND_UNIT, signal="0")
        with stranger(host, SECOND_PORT):
            wait_for(lambda: serving.processes(host, SECOND_UNIT) == {}, seconds=ENDS_WITHIN, what="the end")

    ran = meanwhile(serving, taken)
    said = taken_away(serving, ran)
    assert f"port {SECOND_PORT} was taken by" in said
    assert "stranger.service" in said


def test_a_scheduler_that_is_killed_while_it_starts(serving: RealFleet) -> None:
    serving.write(with_second(serving, args={"pp_size": 2}, environment=TWO_RANKS))
    ran = meanwhile(serving, lambda deploy: deploy.signal("sglang::scheduler_PP1", unit=SECOND_UNIT))
    said = taken_away(serving, ran)
    assert names_the_dead(said), said
    soon(serving)


def test_a_scheduler_that_is_killed_in_the_soak_goes_back(serving: RealFleet) -> None:
    host = serving.hosts[0]
    before, known = serving.release(host), activations(host)
    serving.write(serving.settings(args={"max_running_requests": 4}, health={"soak": "30s"}))

    def killed(deploy: Deploy) -> None:
        deploy.soaks(after=known)
        deploy.signal("sglang::scheduler_PP1")

    said = went_back(serving, meanwhile(serving, killed), to=before)
    assert names_the_dead(said), said


def test_memory_that_is_exhausted_is_named(serving: RealFleet) -> None:
    host = serving.hosts[0]
    serving.write(with_second(serving))
    with memory.group(serving.lab.name) as group:

        def limited(deploy: Deploy) -> None:
            group.limit(host, deploy.signal("sglang::scheduler", unit=SECOND_UNIT, signal="0"))

        ran = meanwhile(serving, limited)
    said = taken_away(serving, ran)
    assert "out of memory" in said
    soon(serving)


def test_a_sigterm_while_it_starts_leaves_nothing_behind(serving: RealFleet) -> None:
    serving.write(with_second(serving))

    def ended(deploy: Deploy) -> None:
        deploy.signal("sglang::detokenizer", unit=SECOND_UNIT, signal="0")
        deploy.signal("main", unit=SECOND_UNIT, signal="TERM")

    said = taken_away(serving, meanwhile(serving, ended))
    assert "exited with status 143" in said or "signal 15" in said
    soon(serving)
