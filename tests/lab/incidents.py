"""What happens to hosts and controllers in tests: faults, cut cables, killed runs; and what to look at afterwards."""

import itertools
import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lab import Host
from lab.standins import sglang
from tests.lab.operator import (
    API_KEY,
    SETTINGS,
    STATE,
    UNIT,
    Operator,
    answers,
    main_pid,
    proven_releases,
    running_release,
    wait_for,
)

if TYPE_CHECKING:
    import subprocess

FAULTS = "/etc/sglang-standin.json"
WHEELS = "/srv/wheels"
FLAGS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        *("stream_interval", "random_seed", "max_queued_requests"),
        *("max_running_requests", "max_prefill_tokens", "max_total_tokens"),
    )
}
"""Arguments whose number changes nothing here, as SGLang's flags: as many as four hosts can run, and more."""
TRANSIENT = "sglang-fleet-activate-k26.service"
STEP_SECONDS = 60.0
QUICK = SETTINGS["services"]["k26"]["health"] | {"interval": "200ms", "soak": "300ms"}
_numbers = itertools.count(101)


def make_serving(operator: Operator) -> None:
    """See to it that all hosts run the same proven release, whichever; where they do, they are left as they are."""
    hosts = operator.lab.hosts
    state = {(running_release(host), *proven_releases(host)[-1:]) for host in hosts}
    (running, *proven), *others = state
    if not running or proven != [running] or others:
        operator.settings(SETTINGS | {"rollout": {"waves": ["100%"]}})
        done = operator.deploy()
        assert done.status == 0, done.text
    operator.settings(SETTINGS)


def ask_for_new_release(operator: Operator, *, rollout: dict[str, Any] | None = None, **service: Any) -> str:
    """Write settings for a release no host has seen; returns the flag that it has, and what runs now has not.

    Faults that hold `only_with` this flag spare the release that is gone back to.

    Args:
        operator: whose settings.
        rollout: another `rollout` than that of `SETTINGS`.
        service: further keys of the service; its health gate is a quick one without.
    """
    running = {word for host in operator.lab.hosts if main_pid(host) for word in arguments(host)}
    name, flag = next((name, flag) for name, flag in FLAGS.items() if flag not in running)
    tree = json.loads(json.dumps(SETTINGS))
    tree["services"]["k26"]["args"][name] = next(_numbers)
    tree["services"]["k26"] |= {"health": QUICK, **service}
    operator.settings(tree | ({"rollout": rollout} if rollout else {}))
    return flag


def ask_for_new_venv(operator: Operator, host: Host, *, find_links: str) -> str:
    """Make the wanted release one whose venv is not on the host; returns a word that its `/server_info` answers.

    Args:
        operator: whose settings; called after `ask_for_new_release`.
        host: gets the wheel, in `WHEELS`.
        find_links: where the settings say that the wheel is.
    """
    marker = f"venv{next(_numbers)}"
    wheel = sglang.build(operator.folder / marker, marker=marker)
    host.run(f"mkdir -p {WHEELS}; rm -f {WHEELS}/*")
    (host.root / WHEELS.lstrip("/") / wheel.name).write_bytes(wheel.read_bytes())
    (operator.folder / f"locks/{marker}.txt").write_text(sglang.lock_text(wheel))
    tree = json.loads((operator.folder / "group_vars/all.yml").read_text())
    tree["sglang"] |= {"requirements": f"locks/{marker}.txt", "find_links": [find_links]}
    operator.settings(tree)
    return marker


def server_marker(host: Host) -> str:
    """The word that tells from which wheel the running server is."""
    command = f"curl -s -H 'Authorization: Bearer {API_KEY}' http://127.0.0.1:30001/server_info"
    return str(json.loads(host.run(command).stdout)["standin_marker"])


def fault(*hosts: Host, only_with: str = "", **faults: Any) -> None:
    """Give servers that start from now on these faults (lab/standins/sglang/package/faults.py)."""
    for host in hosts:
        host.write(FAULTS, json.dumps({"only_with_flag": {only_with: faults}} if only_with else faults))


def heal(hosts: Iterable[Host]) -> None:
    """Take the faults away, and put the cables back."""
    for host in hosts:
        host.run(f"rm -f {FAULTS}")
        host.restore_network()


def forget(host: Host) -> None:
    """Make it a host that no service was ever deployed to; toolkit and venvs stay, which saves minutes."""
    host.run(
        f"systemctl disable -q --now {UNIT}; rm -rf /etc/systemd/system/{UNIT} {STATE}/services; "
        f"systemctl daemon-reload; systemctl reset-failed {UNIT}",
        check=False,
    )


def hang_up(host: Host) -> None:
    """End the host's SSH connections, as a firewall that restarts does; new ones can be made."""
    host.run("listener=$(systemctl show -P MainPID ssh); kill -9 $(pgrep -x sshd | grep -vx $listener)")


def arguments(host: Host) -> list[str]:
    """The running server's command line, from the interpreter on."""
    return host.run(f"cat /proc/{main_pid(host)}/cmdline").stdout.rstrip("\0").split("\0")


def environment(host: Host) -> dict[str, str]:
    """The running server's environment, without what systemd makes new for each start."""
    text = host.run(f"cat /proc/{main_pid(host)}/environ").stdout
    variables = dict(variable.split("=", 1) for variable in text.rstrip("\0").split("\0"))
    return {
        name: variables[name] for name in variables.keys() - {"INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID"}
    }


def properties(host: Host, *names: str) -> list[str]:
    """The values of these properties of the unit, in this order."""
    return [host.run(f"systemctl show {UNIT} -P {name}").stdout.strip() for name in names]


def assert_serves(host: Host, release: str | None, *, key: str = API_KEY) -> None:
    """The host runs this release, has proven it last, and answers."""
    found = running_release(host), proven_releases(host)[-1:], answers(host, key=key)
    assert found == (release, [release], True), f"{host.name}: {found}, not {release}"


def wait_for_activation(host: Host) -> None:
    """Wait until no transaction goes on, whoever watched it."""
    script = f"systemctl is-active -q {TRANSIENT}"
    wait_for(lambda: host.run(script, check=False).returncode != 0, seconds=STEP_SECONDS, what="the activation's end")


def read_until(process: "subprocess.Popen[str]", *texts: str) -> str:
    """Read what a run prints until one of its lines holds all these texts; everything up to there.

    Raises:
        AssertionError: it ended before.
    """
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if all(text in line for text in texts):
            return "".join(seen)
    raise AssertionError(f"{texts} never came:\n{''.join(seen)}")


def end_run(process: "subprocess.Popen[str]", number: int) -> str:
    """Send a signal to a whole run, as a terminal does, and wait for its end; what it still printed."""
    os.killpg(process.pid, number)
    return process.communicate(timeout=STEP_SECONDS)[0]


def reasons(text: str) -> str:
    """The verdicts of a run, without line breaks."""
    return " ".join(text.partition("How each host ended")[2].partition("--> Results")[0].split())
