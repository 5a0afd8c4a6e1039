"""Looking, planning and refusing: what an operator sees before anything changes, and that nothing does (F1-F8)."""

import re
from typing import Any

import pytest

from lab import Host
from tests.lab.evidence import differing, traces, untouched
from tests.lab.incidents import fault, heal
from tests.lab.operator import (
    SETTINGS,
    STATE,
    UNIT,
    Operator,
    Ran,
    answers,
    main_pid,
    proven_releases,
    running_release,
)

NOBODY = "10.77.0.200"  # an address of the lab's network that no host has
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
PROVEN_FILE = f"{STATE}/services/k26/proven.json"
ALL_AT_ONCE = {"waves": ["100%"]}


def k26(**service: Any) -> dict[str, Any]:
    return {"services": {"k26": service}}


def differences(ran: Ran, *, of: str = "k26", margin: str = "      ") -> dict[str, list[str]]:
    """The changing lines that a plan shows for the service, by host; hosts that are `as` another have the same list."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in ran.text.splitlines():
        if alike := re.fullmatch(rf" {{4}}{of} on (.+): as (h\d)", line):
            found.update(dict.fromkeys(alike[1].split(", "), found[alike[2]]))
        elif head := re.fullmatch(rf" {{4}}{of} on (h\d)", line):
            current = found.setdefault(head[1], [])
        elif re.match(r" {4}\S", line):
            current = []  # of no concern here
        elif line.startswith((f"{margin}+", f"{margin}-", f"{margin}*")) and not line.startswith(f"{margin}---"):
            current.append(line.removeprefix(margin))
    return found


def drifts(ran: Ran) -> dict[str, list[str]]:
    """What a plan says that somebody did to the service, by host: the signs, and the lines that differ for them."""
    return differences(ran, of="drift of k26", margin=" " * 8)


def refused(ran: Ran, host: str) -> str:
    """Why the plan says that a host is left as it is, in one line; empty when it is not refused."""
    block = re.search(rf"^ {{4}}{host}: refused, left as it is\n((?: {{6}}.*\n)+)", ran.text, re.MULTILINE)
    return " ".join(block[1].split()) if block else ""


def no_trace_of_python(ran: Ran) -> bool:
    return "Traceback" not in ran.text and "Error:" not in ran.text


def test_f1_f5_fresh_hosts_get_a_clean_create_plan_and_are_not_touched_by_it(host: Host, operator: Operator) -> None:
    fresh = operator.lab.hosts[-1]
    if not fresh.is_pristine:
        operator.lab.reset(fresh)
    operator.hosts([host.name, fresh.name])
    with untouched(host, fresh):
        ran = operator.plan()
    assert ran.status == 0, ran.text
    assert "now not installed" in ran.text
    assert f"k26 on {fresh.name}: as {host.name}" in ran.text
    assert f"before any service on {fresh.name}: as {host.name}" in ran.text
    assert "install the CUDA toolkit" in ran.text
    assert "build the venv" in ran.text
    created = differences(ran)[host.name]
    assert "+[Service]" in created
    assert "+    --pp-size 8 \\" in created
    assert all(line.startswith("+") for line in created)
    assert "could not be read" not in ran.text
    assert no_trace_of_python(ran)
    assert host.run(f"ls -d {STATE}", check=False).returncode != 0


def test_the_evidence_would_show_a_daemon_reload_and_a_write(host: Host) -> None:
    before = traces(host)
    host.run("systemctl daemon-reload; touch /etc/here /dev/shm/there")
    after = traces(host)
    assert "etc/here" in differing(before.disk, after.disk)
    assert after.memory.splitlines()[0] != before.memory.splitlines()[0]
    assert "/dev/shm/there" in after.memory  # noqa: S108 - looked at
    host.run("systemctl daemon-reload")
    assert traces(host).memory != after.memory


def test_f2_each_difference_belongs_to_its_own_host_and_equal_ones_are_one(deployed: Operator) -> None:
    deployed.change(args={"max_running_requests": 32})
    deployed.settings(k26(args={"context_length": 4096}), file="host_vars/h2.yml")
    deployed.settings(k26(nccl={"algo": "Ring"}, args={"max_running_requests": None}), file="host_vars/h3.yml")
    with untouched(*deployed.lab.hosts):
        ran = deployed.plan()
    assert ran.status == 0, ran.text
    assert differences(ran) == {
        "h1": ["+    --max-running-requests 32 \\"],
        "h2": ["+    --max-running-requests 32 \\", "+    --context-length 4096 \\"],
        "h3": ["+NCCL_ALGO=Ring"],
        "h4": ["+    --max-running-requests 32 \\"],
    }
    assert "k26 on h4: as h1" in ran.text


def test_f3_f4_every_error_of_one_host_is_told_and_the_others_are_still_planned(deployed: Operator) -> None:
    deployed.change(args={"max_running_requests": 32})
    wrong = k26(args={"context_lengthh": 4096, "tp_size": "x"}, soak=3)
    deployed.settings(wrong, file="host_vars/h2.yml")
    for run in (deployed.plan, deployed.deploy):
        with untouched(*deployed.lab.hosts):
            ran = run()
        assert ran.status == 1, ran.text
        assert differences(ran).keys() == {"h1", "h3", "h4"}
        assert "host_vars/h2.yml:5  services.k26.args.context_lengthh" in ran.text
        assert "did you mean context_length?" in ran.text
        assert "host_vars/h2.yml:6  services.k26.args.tp_size" in ran.text
        assert "host_vars/h2.yml:8  services.k26.soak" in ran.text
        assert "Nothing was changed" in ran.text
        assert no_trace_of_python(ran)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--serial"], "--serial cannot be used here: hosts would run one after another, past the waves"),
        (["--no-wait"], "--no-wait cannot be used here: a later wave would not wait"),
        (["--limit", "h1", "--limit=h22"], "--limit h22 matches no host of the inventory (did you mean h2?)"),
        (["--exclude", "h22"], "--exclude h22 matches no host"),
        (["--data", "services.k26.args.prot=30002"], "--data services.k26.args.prot\n"),
        (["--data", "servces.k26.args.port=30002"], "--data servces.k26.args.port\n"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_reason(deployed: Operator, arguments: list[str], told: str) -> None:
    deployed.change(args={"max_running_requests": 35})
    with untouched(*deployed.lab.hosts, most_sessions=0):
        ran = deployed.deploy(*arguments)
    assert ran.status == 1, ran.text
    assert told in ran.text
    assert "Nothing was changed" in ran.text
    assert "Starting operation" not in ran.text
    assert no_trace_of_python(ran)


def test_a_second_run_does_nothing_with_at_most_two_channels_a_host(deployed: Operator) -> None:
    with untouched(*deployed.lab.hosts, most_sessions=2):
        ran = deployed.deploy()
    assert ran.status == 0, ran.text
    assert "nothing to do on h1, h2, h3, h4" in ran.text
    assert "Starting operation" not in ran.text


def test_f7_a_host_that_cannot_be_known_is_refused_and_the_others_go_on(deployed: Operator) -> None:
    h1, h2, h3, h4 = deployed.lab.hosts
    deployed.settings({**SETTINGS, "rollout": ALL_AT_ONCE})
    for name in ("h1", "h4"):
        deployed.settings(k26(args={"max_running_requests": 7}), file=f"host_vars/{name}.yml")
    h1.run(f"touch /etc/lab-nvidia-smi/fail; cp {PROVEN_FILE} /root/kept; echo '{{' > {PROVEN_FILE}")
    h2.run(f"touch /etc/lab-nvidia-smi/hang; mv {UNIT_FILE} /root/kept; mkdir {UNIT_FILE}")
    h3.run(f"mv /usr/bin/nvidia-smi /usr/bin/away; mv {UNIT_FILE} /root/kept; mkfifo {UNIT_FILE}")
    try:
        with untouched(h1, h2, h3):
            ran = deployed.deploy()
    finally:
        h1.run(f"rm /etc/lab-nvidia-smi/fail; mv /root/kept {PROVEN_FILE}")
        h2.run(f"rm /etc/lab-nvidia-smi/hang; rmdir {UNIT_FILE}; mv /root/kept {UNIT_FILE}")
        h3.run(f"mv /usr/bin/away /usr/bin/nvidia-smi; rm {UNIT_FILE}; mv /root/kept {UNIT_FILE}")
    assert ran.status == 1, ran.text
    for name, why, record in (
        ("h1", "couldn't communicate", "services.k26.proven could not be read"),
        ("h2", "no answer in time", "services.k26.unit.text"),
        ("h3", "not found", "services.k26.unit.text"),
    ):
        assert "gpus, driver, compute, toolkit_verified could not be read" in refused(ran, name)
        assert why in refused(ran, name)
        assert record in refused(ran, name)
        assert ran.verdict(name) == "REFUSED"
    assert differences(ran).keys() == {"h4"}
    assert ran.verdict("h4").startswith("proven")
    assert running_release(h4) == proven_releases(h4)[-1]
    assert no_trace_of_python(ran)


def test_f8_odd_bytes_and_modes_of_the_unit_are_shown_right_and_put_right(deployed: Operator) -> None:
    h1, h2, h3, h4 = deployed.lab.hosts
    deployed.settings({**SETTINGS, "rollout": ALL_AT_ONCE})
    unit, pid = h4.read(UNIT_FILE), main_pid(h4)
    h1.run(f"sed -i 's/$/\\r/' {UNIT_FILE}")
    h2.run(f"truncate -s -1 {UNIT_FILE}")
    h3.run(f"printf '# caf\\351\\n' >> {UNIT_FILE}")
    h4.run(f"chmod 0666 {UNIT_FILE}")
    with untouched(*deployed.lab.hosts):
        ran = deployed.plan()
    assert ran.status == 0, ran.text
    found = drifts(ran)
    lines = unit.splitlines()
    edited = "* the unit was edited"
    assert found["h1"] == [edited, *(f"-{line}" for line in lines), *(f"+{line}␍" for line in lines)]
    assert found["h2"] == [edited, "+\\ no line end at the end of the file"]
    assert found["h3"] == [edited, "+# caf\\xe9"]
    assert found["h4"] == ["* the unit has the mode 0666, not 0644"]
    assert differences(ran) == {"h1": [], "h2": [], "h3": [], "h4": []}
    done = deployed.deploy()
    assert done.status == 0, done.text
    assert all(host.read(UNIT_FILE) == unit for host in (h1, h2, h3, h4))
    assert h4.run(f"stat -c %a {UNIT_FILE}").stdout == "644\n"
    assert main_pid(h4) == pid  # the mode alone is no reason to restart a server


def test_f8_a_unit_of_another_kind_place_or_owner_is_told_and_put_right(deployed: Operator) -> None:
    h1, h2, h3, h4 = deployed.lab.hosts
    deployed.settings({**SETTINGS, "rollout": ALL_AT_ONCE})
    unit, pid = h3.read(UNIT_FILE), main_pid(h3)
    h1.run(f"mv {UNIT_FILE} /root/k26.unit; ln -s /root/k26.unit {UNIT_FILE}; systemctl daemon-reload")
    h2.run(f"systemctl stop {UNIT}; rm {UNIT_FILE}; systemctl daemon-reload; systemctl mask -q {UNIT}")
    h3.run(f"chown operator {UNIT_FILE}")
    h4.run(f"mv {UNIT_FILE} /run/systemd/system/{UNIT}; systemctl daemon-reload")
    with untouched(*deployed.lab.hosts):
        ran = deployed.plan()
    assert ran.status == 0, ran.text
    assert drifts(ran) == {
        "h1": ["* the unit is a link to /root/k26.unit, not a file"],
        "h2": ["* the unit is masked: nothing can start it"],
        "h3": [f"* the unit belongs to the user {h3.run('id -u operator').stdout.strip()}, not to root"],
        "h4": ["* the unit lies in /run/systemd/system: the next boot forgets it"],
    }
    assert "now a masked unit" in ran.text
    done = deployed.deploy()
    assert done.status == 0, done.text
    for host in deployed.lab.hosts:
        assert host.run(f"stat -c '%F %U %a' {UNIT_FILE}").stdout == "regular file root 644\n"
        assert host.read(UNIT_FILE) == unit
        assert host.run(f"systemctl is-enabled {UNIT}").stdout == "enabled\n"
        assert answers(host)
    assert main_pid(h3) == pid  # whose the file is, is no reason to restart a server
    assert "nothing to do on h1, h2, h3, h4" in deployed.plan().text


def test_f9_f12_what_a_hand_did_to_secrets_is_seen_but_not_shown_and_put_right(deployed: Operator) -> None:
    h1, h2, h3, h4 = deployed.lab.hosts
    deployed.settings({**SETTINGS, "rollout": ALL_AT_ONCE})
    pids = [main_pid(host) for host in (h1, h2)]
    secret = h1.run(f"ls {STATE}/services/k26/releases/{running_release(h1)}/secrets.yaml").stdout.strip()
    text = h1.read(secret)
    h1.run(f"chmod 0644 {secret}")
    h2.run(f"sed -i s/poison/venom/ {secret}")
    h3.run(f"cd $(dirname {secret}); echo HF_TOKEN=venom-3 >> environment; chmod 0666 logging.json")
    h4.run(f"sed -i 's/--pp-size 8/& --api-key venom-4/; s/^Description=.*/&, key hf_{'venom' * 6}/' {UNIT_FILE}")
    with untouched(*deployed.lab.hosts):
        ran = deployed.plan()
    assert ran.status == 0, ran.text
    described = "Description=SGLang k26"
    assert drifts(ran) == {
        "h1": ["* others may read or change the release's secrets.yaml, by its mode"],
        "h2": ["* the release's secrets.yaml was edited"],
        "h3": [
            *("* the environment was edited", "+HF_TOKEN=•••"),
            "* others may read or change the release's logging.json, by its mode",
        ],
        "h4": [
            *("* the unit was edited", f"-{described}", f"+{described}, key •••"),
            *("-    --pp-size 8 \\", "+    --pp-size 8 --api-key ••• \\"),
        ],
    }
    done = deployed.deploy("-vvv", "--debug")
    assert done.status == 0, done.text
    assert "venom" not in ran.text + done.text
    for host in deployed.lab.hosts:
        assert host.run(f"stat -c '%U %a' {secret}").stdout == "root 400\n"
        assert host.read(secret) == text
    assert main_pid(h1) == pids[0]  # what others could read is no reason to restart
    assert main_pid(h2) != pids[1]  # it may have read what somebody wrote
    assert "nothing to do on h1, h2, h3, h4" in deployed.plan().text


def test_what_somebody_changed_is_shown_apart_from_what_the_settings_change(deployed: Operator) -> None:
    h1, h2, h3, h4 = deployed.lab.hosts
    deployed.settings({**SETTINGS, "rollout": ALL_AT_ONCE})
    deployed.settings(k26(args={"max_running_requests": 37}), file="host_vars/h1.yml")
    h1.run(f"sed -i 's/--pp-size 8/--pp-size 4/' {UNIT_FILE}")
    h2.run(
        f"mkdir {UNIT_FILE}.d; printf '[Service]\\nEnvironment=HF_TOKEN=poison-drop-in\\n' > {UNIT_FILE}.d/by-hand.conf"
    )
    h3.run(f"systemctl disable -q {UNIT}")
    h4.run(f"systemctl stop {UNIT}")
    with untouched(*deployed.lab.hosts):
        ran = deployed.plan()
    assert ran.status == 0, ran.text
    assert drifts(ran) == {
        "h1": ["* the unit was edited", "-    --pp-size 8 \\", "+    --pp-size 4 \\"],
        "h2": ["* a drop-in changes the unit", "+[Service]", "+Environment=HF_TOKEN=•••"],
        "h3": ["* the unit does not start with the host: it is disabled"],
        "h4": ["* the server was stopped"],
    }
    assert differences(ran) == {"h1": ["+    --max-running-requests 37 \\"], "h2": [], "h3": [], "h4": []}
    assert "poison" not in ran.text
    done = deployed.deploy()
    assert done.status == 0, done.text
    assert "--pp-size 8" in h1.read(UNIT_FILE)
    assert h2.run(f"ls {UNIT_FILE}.d", check=False).returncode != 0
    assert h3.run(f"systemctl is-enabled {UNIT}").stdout == "enabled\n"
    assert main_pid(h4)
    again = deployed.plan()
    assert "nothing to do on h1, h2, h3, h4" in again.text


@pytest.mark.usefixtures("healed")
def test_a_plan_tells_that_nothing_serves_and_what_could_not_be_started_again(deployed: Operator) -> None:
    h1, h2 = deployed.lab.hosts[:2]
    deployed.hosts([h1.name])
    deployed.settings(k26(args={"max_running_requests": 37}), file="host_vars/h1.yml")
    fault(h1, exit_at_start=3)  # whichever release it is
    failed = deployed.deploy()
    assert failed.verdict("h1").startswith("FAILED"), failed.text
    deployed.hosts([h1.name, h2.name])
    h2.run(f"mv {STATE}/venvs/* /root/")
    with untouched(h1, h2):
        ran = deployed.plan()
    said = " ".join(ran.text.split())
    assert re.search(r"another release is installed; nothing serves now: the server has [a-z ,]+; the last act", said)
    assert re.search(r"the last activation there, by [^;]+, failed", said), ran.text
    assert re.search(r"\* its venv \S+ is gone: it runs, but could not be started again", said), ran.text
    assert set(drifts(ran)) == {"h2"}
    pid = main_pid(h2)
    heal([h1])
    done = deployed.deploy()
    assert done.status == 0, done.text
    assert main_pid(h2) == pid
    assert "nothing to do on h1, h2" in deployed.plan().text


def test_f40_a_host_nobody_answers_on_is_told_and_the_others_go_on(deployed: Operator) -> None:
    deployed.hosts(["h1", "h9", "h2"], extra={"h9": NOBODY})
    deployed.settings({**SETTINGS, "rollout": ALL_AT_ONCE})
    for name in ("h1", "h2"):
        deployed.settings(k26(args={"max_running_requests": 33}), file=f"host_vars/{name}.yml")
    other = deployed.lab.host("h3")
    with untouched(other, most_sessions=0):
        ran = deployed.deploy()
    assert ran.status == 1, ran.text
    assert "h9: not reached" in ran.text
    assert [ran.verdict(name).split()[0] for name in ("h1", "h9", "h2")] == ["proven", "UNREACHABLE", "proven"]
    assert no_trace_of_python(ran)


def test_one_host_under_two_names_is_refused_under_both_and_other_hosts_are_not(deployed: Operator) -> None:
    h1, h2, h3, _ = deployed.lab.hosts
    deployed.hosts(["h1", "h2", "h3"], extra={"h1b": h1.address})
    deployed.settings({**SETTINGS, "rollout": {**ALL_AT_ONCE, "failure_budget": "100%", "on_failure": "host"}})
    for name, requests in (("h1b", 38), ("h2", 39)):
        deployed.settings(k26(args={"max_running_requests": requests}), file=f"host_vars/{name}.yml")
    with untouched(h1, h3, most_sessions=4):  # two for each of its names
        ran = deployed.deploy()
    assert ran.status == 1, ran.text
    assert "it is the same machine as h1b (machine-id " in refused(ran, "h1")
    assert "it is the same machine as h1 (machine-id " in refused(ran, "h1b")
    assert [ran.verdict(name).split()[0] for name in ("h1", "h1b", "h2", "h3")] == [
        "REFUSED",
        "REFUSED",
        "proven",
        "unchanged",
    ]
    assert differences(ran).keys() == {"h2"}
    assert running_release(h2) == proven_releases(h2)[-1] != running_release(h1)


def test_limit_changes_only_the_hosts_named(deployed: Operator) -> None:
    deployed.change(args={"max_running_requests": 34})
    h1, h2, h3, h4 = deployed.lab.hosts
    with untouched(h1, h3, h4, most_sessions=0):
        ran = deployed.deploy("--limit", "h2")
    assert ran.status == 0, ran.text
    assert "wave 1 of 1: h2" in ran.text
    assert ran.verdict("h2").startswith("proven")
    assert not ran.verdict("h1")
    assert running_release(h2) != running_release(h1)


def test_a_login_that_needs_sudo_deploys_and_one_that_may_not_is_told(deployed: Operator) -> None:
    h1, h2, *_ = deployed.lab.hosts
    deployed.change(args={"max_running_requests": 36})
    deployed.login = "operator"
    deployed.hosts(["h1", "h2"])
    inventory = deployed.folder / "fleet.py"
    with_sudo = inventory.read_text()
    inventory.write_text(with_sudo.replace(", '_sudo': True", "", 1))  # for h1
    h2.run("mv /etc/sudoers.d/operator /root/kept")  # now its sudo asks for a password
    try:
        with untouched(h1):
            ran = deployed.deploy()
    finally:
        h2.run("mv /root/kept /etc/sudoers.d/operator")
    assert ran.status == 1, ran.text
    assert "the login is not root and sudo is not in use" in refused(ran, "h1")
    assert "sudo asks for a password" in refused(ran, "h2")
    assert no_trace_of_python(ran)
    inventory.write_text(with_sudo)
    done = deployed.deploy()
    assert done.status == 0, done.text
    assert all(running_release(host) == proven_releases(host)[-1] for host in (h1, h2))


def test_a_settings_file_that_belongs_to_nobody_is_pointed_out(deployed: Operator) -> None:
    deployed.settings({"rollout": {"waves": ["100%"]}}, file="host_vars/h9.yml")
    done = deployed.plan()
    assert done.status == 0, done.text
    assert "note: host_vars/h9.yml belongs to nobody in this inventory" in done.text


def test_another_folder_and_a_missing_terminal_are_told_before_anything_is_asked(operator: Operator) -> None:
    (operator.folder / "group_vars").rename(operator.folder / "elsewhere")
    assert "has no group_vars/: run in the deployment folder" in operator.plan().text
    (operator.folder / "elsewhere").rename(operator.folder / "group_vars")
    process = operator.start()
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "There is no terminal to confirm on: add -y" in text
    assert "Traceback" not in text
