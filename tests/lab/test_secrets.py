"""Nothing secret leaves: one story of deploys, failures and a rollback, and then a search everywhere (F9-F12)."""

import json
import os
import re
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest

from lab import Host, Lab, story
from lab.paths import state_folder
from tests.lab.operator import SETTINGS, STATE, UNIT, Operator, Ran, running_release
from tests.lab.searching import files_holding, holding
from tests.lab.watching import CommandLines, Watched, watching

# Every secret that the product is given begins with the first, every one in the unit written by hand with the second:
# new ones for each run, so that two runs of the tests do not find each other's.
OURS = f"poison-{secrets.token_hex(6)}"
THEIRS = f"venom-{secrets.token_hex(6)}"
AWKWARD = """-"%h$HOME'\\n{x}"""  # what systemd, YAML, JSON or a shell would take for theirs
BY_HAND = f"""\
Environment=HF_TOKEN={THEIRS}-token
Environment="HUGGING_FACE_HUB_TOKEN={THEIRS}-quoted"
ExecStart=/root/venv_sglang211/bin/python -m sglang.launch_server \\
  --api-key {THEIRS}-key --admin-api-key={THEIRS}-admin \\
"""
LOUD = ("-vvv", "--debug")
RELEASE_FILE = re.compile(r"var/lib/sglang-fleet/services/k26/releases/[0-9a-f]+/(secrets\.yaml|environment\.secret)")
FOUND_FILE = re.compile(r"var/lib/sglang-fleet/services/k26/found/[0-9a-f]+/unit")
STAGING = re.compile(r"/var/lib/sglang-fleet/services/k26/releases/\.staging-[0-9a-f]{24}/[a-z.]+")


@dataclass
class Told:
    """What the story left to be searched."""

    operator: Operator
    hosts: list[Host]
    began: float
    runs: dict[str, Ran] = field(default_factory=dict)
    files: dict[str, list[Watched]] = field(default_factory=dict)
    command_lines: set[bytes] = field(default_factory=set)


def settings(**service: Any) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    k26 = tree["services"]["k26"]
    k26["args"] |= {"model_path": "/srv/models/tiny", **service.pop("args", {})}
    k26 |= {
        "user": "sglang",
        "secrets": {
            "api_key": {"env": "K26_API_KEY"},
            "admin_api_key": {"file": "private/admin"},
            "HF_TOKEN": {"command": "cat private/token"},
        },
        **service,
    }
    return tree


def give_secrets(operator: Operator, generation: str) -> None:
    """Put secrets of a new generation where the settings say that they are."""
    operator.environment["K26_API_KEY"] = f"{OURS}-{generation}-key{AWKWARD}"
    for name in ("admin", "token"):
        path = operator.folder / "private" / name
        path.parent.mkdir(exist_ok=True, mode=0o700)
        path.write_text(f"{OURS}-{generation}-{name}{AWKWARD}\n")


@pytest.fixture(scope="module")
def told(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The whole story, once: h1 has a unit written by hand and a login as root, h2 nothing and a login with sudo."""
    hosts = lab.hosts[:2]
    for host in hosts:
        if not host.is_pristine:
            lab.reset(host)
        host.mark_used()
    operator = Operator(lab, tmp_path_factory.mktemp("secrets"))
    operator.hosts(["h1"])
    inventory = operator.folder / "fleet.py"
    root = inventory.read_text()
    operator.login = "operator"
    operator.hosts(["h2"])
    inventory.write_text(f"{root}{inventory.read_text().replace('fleet =', 'fleet +=')}")
    _write_by_hand(hosts[0])
    lines = CommandLines()
    story_told = Told(operator, hosts, time.time())
    try:
        _tell(story_told)
    finally:
        lines.close()
    story_told.command_lines = lines.seen
    return story_told


def _write_by_hand(host: Host) -> None:
    story.write(host.root)
    text = re.sub(r"ExecStart=.*\n", lambda _: BY_HAND, story.unit_text(), count=1)
    host.write(f"/etc/systemd/system/{UNIT}", text)
    host.run(f"systemctl daemon-reload; systemctl restart {UNIT}")


def _tell(told: Told) -> None:
    operator, runs = told.operator, told.runs
    give_secrets(operator, "first")
    operator.settings(settings(args={"pp_async_batch_depth": 1}))
    for host in told.hosts:
        fault = {"only_with_flag": {"--pp-async-batch-depth": {"exit_at_start": 3}}}
        host.write("/etc/sglang-standin.json", json.dumps(fault))
    runs["first plan"] = operator.plan(*LOUD)
    runs["first deploy fails"] = operator.deploy(*LOUD)
    operator.settings(settings())
    runs["deploy"] = operator.deploy(*LOUD)
    give_secrets(operator, "second")
    runs["plan of a rotation"] = operator.plan(*LOUD)
    with watching(told.hosts, [OURS.encode(), THEIRS.encode()]) as watches:
        runs["rotation"] = operator.deploy(*LOUD)
    told.files = {name: watch.seen for name, watch in watches.items()}
    operator.settings(settings(args={"pp_async_batch_depth": 1}))
    runs["deploy fails"] = operator.deploy(*LOUD)
    runs["rollback"] = operator.run(*LOUD, script="rollback.py")
    operator.settings(settings(args={"host": "127.0.0.1"}, secrets={"api_key": {"env": "K26_API_KEY"}}))
    runs["plan of a removal"] = operator.plan(*LOUD)


def test_the_story_went_as_it_was_meant(told: Told) -> None:
    verdicts = {name: [ran.verdict(host).split("  ")[0] for host in ("h1", "h2")] for name, ran in told.runs.items()}
    text = "\n".join(ran.text for ran in told.runs.values())
    assert verdicts["first deploy fails"] == ["RETURNED", "NOT STARTED"], text
    assert verdicts["deploy"] == ["proven", "proven"], text
    assert verdicts["rotation"] == ["proven", "proven"], text
    assert verdicts["deploy fails"] == ["RETURNED", "NOT STARTED"], text
    assert "exit_at_start 3" in told.runs["deploy fails"].text  # the lines of the journal are shown
    assert told.runs["rollback"].status == 0, text
    assert all(running_release(host) for host in told.hosts)


def test_f9_a_rotated_or_removed_secret_is_named_but_neither_value_shown(told: Told) -> None:
    rotation = told.runs["plan of a rotation"].text
    for name in ("api_key", "admin_api_key", "HF_TOKEN"):
        assert re.search(rf"-{name}: •••\n +\+{name}: ••• \(new value\)", rotation), rotation
    assert "k26 on h2: as h1" in rotation
    removal = told.runs["plan of a removal"].text
    for name in ("admin_api_key", "HF_TOKEN"):
        assert re.search(rf"^ +-{name}: •••$", removal, re.MULTILINE), removal
    assert re.search(r"^ +\+api_key: ••• \(new value\)$", removal, re.MULTILINE), removal
    by_hand = told.runs["first plan"].text
    assert "-Environment=HF_TOKEN=•••" in by_hand
    assert "--api-key ••• --admin-api-key=•••" in by_hand


def test_f10_no_secret_is_in_what_the_controller_says(told: Told) -> None:
    for name, ran in told.runs.items():
        assert holding(ran.text, OURS) == [], name
        assert holding(ran.text, THEIRS) == [], name


def test_f10_no_secret_is_in_a_file_of_the_controller(told: Told) -> None:
    sources = {told.operator.folder / "private" / name for name in ("admin", "token")}
    fresh = []
    for place in ("/tmp", "/var/tmp", "/dev/shm"):  # noqa: S108 - searched
        for folder, _, names in os.walk(place):
            if Path(folder).is_relative_to(state_folder()):
                continue  # the hosts' own disks, where the checkout lies there
            paths = [Path(folder, name) for name in names]
            fresh += [path for path in paths if path.is_file() and path.stat().st_mtime >= told.began - 1]
    where = [told.operator.folder, told.operator.lab.folder / "server.log", *sorted(set(fresh) - sources)]
    where += [host.folder / "console" for host in told.hosts]
    for value in (OURS, THEIRS):
        assert {Path(path) for path in files_holding(value, *where)} - sources == set()


def test_f10_no_secret_is_in_a_command_line(told: Told) -> None:
    assert len(told.command_lines) > 50
    for line in told.command_lines:
        assert OURS.encode() not in line
        by_hand = line.startswith(b"/root/venv_sglang211/bin/python")  # somebody else's, which began the story
        assert THEIRS.encode() not in line or by_hand


def test_f10_no_secret_is_in_a_journal(told: Told) -> None:
    for host in told.hosts:
        everything = host.run("journalctl --sync; journalctl -q --all -o export").stdout
        assert "sglang-fleet-activate-k26" in everything
        assert holding(everything, OURS) == []
        for entry in map(json.loads, host.run("journalctl -q --all -o json").stdout.splitlines()):
            if THEIRS in json.dumps(entry):  # the server that was started by hand printed its own arguments
                assert entry["_SYSTEMD_UNIT"] == UNIT, entry
                assert entry["_EXE"].startswith("/usr/bin/python3"), entry


def test_f10_secrets_are_in_no_file_of_a_host_but_those_meant_for_them(told: Told) -> None:
    for host in told.hosts:
        upper = host.folder / "upper"
        service_user = int(host.run("id -u sglang").stdout)
        ours = [os.path.relpath(path, upper) for path in files_holding(OURS, upper)]
        assert {Path(path).name for path in ours} == {"secrets.yaml", "environment.secret"}
        for path in ours:
            assert RELEASE_FILE.fullmatch(path), path
            status = (upper / path).stat()
            expected = (0o400, service_user) if path.endswith("secrets.yaml") else (0o600, 0)
            assert (S_IMODE(status.st_mode), status.st_uid) == expected, path
        theirs = [os.path.relpath(path, upper) for path in files_holding(THEIRS, upper)]
        assert bool(theirs) == (host.name == "h1")
        for path in theirs:
            assert FOUND_FILE.fullmatch(path), path
            assert (S_IMODE((upper / path).stat().st_mode), (upper / path).stat().st_uid) == (0o600, 0), path
        memory = f"grep -rlaF -e {OURS} -e {THEIRS} --exclude-dir=journal /tmp /dev/shm /run"
        assert host.run(memory, check=False).stdout == ""


def test_f10_a_secret_variable_is_in_the_environment_of_the_server_alone(told: Told) -> None:
    script = f"""\
for process in /proc/[0-9]*; do
    tr '\\0' '\\n' < $process/environ 2>/dev/null | grep -aF -e {OURS} -e {THEIRS} | cut -d= -f1 | while read name; do
        echo "$name $(sed 's|.*/||' $process/cgroup | tail -n 1)"
    done
done"""
    for host in told.hosts:
        assert set(host.run(script).stdout.splitlines()) == {f"HF_TOKEN {UNIT}"}


def test_f11_secrets_are_written_under_unpredictable_names_and_private_from_the_start(told: Told) -> None:
    for name, files in told.files.items():
        written = [file for file in files if file.holds]
        assert {Path(file.place).name for file in written} >= {"secrets.yaml", "environment.secret"}, name
        for file in written:
            assert STAGING.fullmatch(file.place), file
            assert not file.mode & 0o077, file
            assert file.folder_mode == 0o700, file
        for file in files:
            if file.place.startswith(("/tmp/", "/var/tmp/", "/dev/shm/")):  # noqa: S108 - looked at
                assert not file.mode & 0o077 or not file.folder_mode & 0o077, file


def test_f12_another_user_of_the_host_learns_nothing(told: Told) -> None:
    looks = {
        "systemctl": f"systemctl show '*'; systemctl cat {UNIT}; systemctl status {UNIT}; systemctl show-environment",
        "processes": "ps auxewww; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'",
        "journal": "journalctl -q --all",
        "files": f"grep -raF -e {OURS} -e {THEIRS} {STATE} /var/lib/sglang /var/cache/sglang /etc /run /tmp /var/tmp",
        "listing": f"ls -lRA {STATE}/services",
    }
    for host in told.hosts:
        for name, look in looks.items():
            seen = host.run(f"({look}) 2>/dev/null", user="operator", check=False).stdout
            assert holding(seen, OURS) == [], (host.name, name)
            assert holding(seen, THEIRS) == [], (host.name, name)
        assert "secrets.yaml" in host.run(looks["listing"], user="operator", check=False).stdout
        assert UNIT in host.run(looks["systemctl"], user="operator", check=False).stdout
