"""What becomes of requests in flight when a server is restarted: they are finished, up to the drain deadline.

SGLang drains by itself on SIGTERM, and for as long as it takes; the unit says how long, and who gets the signal.
"""

import signal
import threading

import pytest

from lab import Host
from tests.lab.incidents import end_run, read_until
from tests.lab.operator import Ran, wait_for
from tests.real.hosts.anyfleet import Streamed
from tests.real.hosts.fleet import UNIT, RealFleet

pytestmark = pytest.mark.lab_only("how long their requests take is known of the small model alone")

SECONDS = 600
"""For whatever takes minutes on a machine that is busy with other things."""

LONG, LONGEST = 1000, 2000
"""Tokens: some tens of seconds for one request alone; and as many as the model's context takes."""

MANY = 8
"""Requests at once that slow each other down, so that they outlast any drain that is not for them."""

CUT = "the old server was not done in the 40 s it had"
ROOM = {"max_total_tokens": 32768}
DROPIN = f"/etc/systemd/system/{UNIT}.d/50-operator.conf"


class Request(threading.Thread):
    """One streamed request, from its start."""

    def __init__(self, fleet: RealFleet, host: Host, *, tokens: int) -> None:
        super().__init__(daemon=True)
        self.came = Streamed()
        self._fleet, self._host, self._asked = fleet, host, tokens
        self.start()

    def run(self) -> None:
        """Read until the server says that it is done, or closes the connection."""
        self._fleet.stream(self._host, self.came, tokens=self._asked, timeout=SECONDS)


def ask(fleet: RealFleet, host: Host, *, tokens: int, count: int = 1) -> list[Request]:
    """Requests that the server works on: the first token of each has come."""
    requests = [Request(fleet, host, tokens=tokens) for _ in range(count)]

    def begun() -> bool:
        assert all(request.is_alive() for request in requests)
        return all(request.came.tokens for request in requests)

    wait_for(begun, seconds=SECONDS, what="the first token of each request")
    return requests


def write(fleet: RealFleet, *, drain: str, requests: int) -> None:
    """Settings with a drain deadline; the number of requests makes them another release."""
    fleet.use("h1")
    fleet.write(fleet.settings(args=ROOM | {"max_running_requests": requests}, health={"drain": drain}))


def deploy(fleet: RealFleet) -> None:
    """Bring the first host to the settings."""
    done = fleet.deploy()
    assert done.status == 0, done.text


def assert_nothing_left(host: Host, before: dict[str, int]) -> None:
    """None of these processes is there any more, whoever they belong to now."""
    pids = ",".join(map(str, before.values()))
    assert host.run(f"ps -o pid=,args= -p {pids}", check=False).stdout == ""


def test_a_request_in_flight_survives_a_planned_restart_and_is_cut_at_the_drain_deadline(fleet: RealFleet) -> None:
    """Two restarts in one test: the second is that of the server which the first has started, and it costs a minute."""
    host = fleet.hosts[0]
    write(fleet, drain="10m", requests=MANY)
    deploy(fleet)
    before = fleet.processes(host)
    write(fleet, drain="10m", requests=MANY + 1)
    [request] = ask(fleet, host, tokens=LONG)
    process = fleet.operator.start("-y")
    try:
        text = read_until(process, "[h1]", "draining")
        assert request.is_alive(), "it was over before the restart began: the test says nothing"
        # A server that drains takes new requests all the same: to keep them away is the router's part.
        assert len(fleet.complete(host).split()) == 8
        assert request.is_alive()
        request.join(SECONDS)
        assert request.came == Streamed(status=200, tokens=LONG, whole=True)
        text += process.communicate(timeout=SECONDS)[0]
    finally:
        if process.poll() is None:
            end_run(process, signal.SIGKILL)
    done = Ran(process.returncode, text)
    assert done.status == 0, text
    assert done.verdict("h1").startswith("proven"), text
    assert CUT not in text
    assert_nothing_left(host, before)

    before = fleet.processes(host)
    write(fleet, drain="0s", requests=MANY)  # a shorter deadline counts at once, for the server that goes too
    requests = ask(fleet, host, tokens=LONGEST, count=MANY)
    done = fleet.deploy()
    assert done.status == 0, done.text
    assert done.verdict("h1").startswith("proven"), done.text
    assert CUT in done.text
    for request in requests:
        request.join(SECONDS)
        assert not request.came.whole
        assert 0 < request.came.tokens < LONGEST
    assert_nothing_left(host, before)


def test_a_unit_that_signals_all_its_processes_loses_the_request(fleet: RealFleet) -> None:
    """Why units say KillMode=mixed: systemd's default sends SIGTERM to the schedulers too, which end at once."""
    host = fleet.hosts[0]
    write(fleet, drain="0s", requests=MANY)
    deploy(fleet)
    host.write(DROPIN, "[Service]\nKillMode=control-group\nTimeoutStopSec=600\n")
    try:
        host.run("systemctl daemon-reload")
        before = fleet.processes(host)
        [request] = ask(fleet, host, tokens=LONG)
        host.run(f"systemctl stop {UNIT}", timeout=SECONDS)
        request.join(SECONDS)
    finally:
        host.run(f"rm -r {DROPIN.rpartition('/')[0]}; systemctl daemon-reload; systemctl reset-failed {UNIT}")
    assert not request.came.whole
    assert 0 < request.came.tokens < LONG
    assert_nothing_left(host, before)
