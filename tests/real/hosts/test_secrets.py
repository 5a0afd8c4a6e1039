"""Nothing secret leaves SGLang itself: deploys, a failure, a benchmark and a way back, then a search (F9-F12).

SGLang prints its arguments when it starts, both keys among them, and serves them at /server_info, from where
bench_serving writes them into its output.
"""

import base64
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.operator import STATE, wait_for
from tests.lab.searching import spellings
from tests.lab.watching import CommandLines
from tests.real.hosts import witness
from tests.real.hosts.anyfleet import AnyFleet
from tests.real.hosts.fleet import RealFleet
from tests.real.hosts.own import INVENTORY, OwnFleet
from tests.real.hosts.poison import OURS, Hidden, PoisonedFleet, Told, fresh_files
from tests.real.hosts.test_anywhere import BENCH, fewer_requests

LOUD = ("-vvv", "--debug")
SHORTEST = 8
"""Characters of a secret that is looked for: a shorter one stands in many texts by accident."""

UNKNOWN_MODEL = {"json_model_override_args": '{"architectures": ["NoSuchForCausalLM"]}'}
"""Seen by SGLang when it has long printed its arguments; every model takes it."""

LOUD_UNIT = "[Service]\nUnsetEnvironment=SGLANG_LOGGING_CONFIG_PATH\n"


@pytest.fixture(scope="module", name="told")
def tell_the_story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """The whole story, once."""
    told = _on_own(request) if INVENTORY in os.environ else _in_lab(request, tmp_path_factory.mktemp("secrets"))
    controller = CommandLines()
    try:
        with witness.command_lines(told.fleet.hosts) as seen:
            _tell(told)
    finally:
        controller.close()
    told.command_lines = {"controller": [line.decode(errors="replace") for line in controller.seen], **seen}
    yield told
    told.fleet.change()


def _in_lab(request: pytest.FixtureRequest, folder: Path) -> Told:
    """One host of the lab, and every kind of secret."""
    return _begun(PoisonedFleet(request.getfixturevalue("real_lab"), folder), Hidden([OURS]), folder)


def _on_own(request: pytest.FixtureRequest) -> Told:
    """The operator's own hosts and secrets."""
    fleet: OwnFleet = request.getfixturevalue("own")
    values = Hidden(value for value in fleet.secrets.values() if len(value) >= SHORTEST)
    if not values:
        pytest.skip(f"the service has no secret of {SHORTEST} or more characters")
    fleet.change()
    return _begun(fleet, values, fleet.folder)


def _begun(fleet: AnyFleet, values: Hidden, folder: Path) -> Told:
    clocks = {host.name: witness.clock(host) for host in fleet.hosts}
    return Told(fleet, values, folder, time.time(), clocks)


def _tell(told: Told) -> None:
    fleet, runs = told.fleet, told.runs
    runs["deploy"] = fleet.deploy(*LOUD)
    fleet.change(args=fewer_requests(fleet.server_info(fleet.hosts[0])))
    runs["change"] = fleet.deploy(*LOUD)
    fleet.change(args=UNKNOWN_MODEL)
    runs["failure"] = fleet.deploy(*LOUD)
    told.bench = fleet.cli("bench", fleet.inventory, *BENCH)
    fleet.change()
    runs["rollback"] = fleet.rollback(*LOUD)


def test_the_story_went_as_it_was_meant(told: Told) -> None:
    hosts, runs = told.fleet.hosts, told.runs
    for name in ("deploy", "change", "rollback"):
        assert runs[name].status == 0, runs[name].text
    assert all(runs["change"].verdict(host.name).startswith("proven") for host in hosts), runs["change"].text
    assert any(runs["failure"].verdict(host.name).startswith("RETURNED") for host in hosts), runs["failure"].text
    assert "NoSuchForCausalLM" in runs["failure"].text  # the lines of the journal are shown
    assert told.bench.status == 0, told.bench.err
    for host in hosts:
        assert told.fleet.answers(host), "with the key that the settings name"


def test_f10_no_secret_is_in_what_the_controller_says(told: Told) -> None:
    for name, ran in told.runs.items():
        assert told.lines_of(ran.text) == [], name
    assert told.lines_of(told.bench.out + told.bench.err) == []


def test_f10_no_secret_is_in_a_file_of_the_controller(told: Told) -> None:
    fresh: list[Path] = []
    for place in (told.folder, "/tmp", "/var/tmp", "/dev/shm"):  # noqa: S108 - searched
        fresh += fresh_files(place, since=told.began)
    if isinstance(told.fleet, RealFleet):
        fresh.append(told.fleet.lab.folder / "server.log")
        fresh += [host.folder / "console" for host in told.fleet.hosts]
    assert fresh
    assert told.files_of(fresh) == []


def test_f10_no_secret_is_in_a_command_line(told: Told) -> None:
    for name, lines in told.command_lines.items():
        assert len(lines) > 20, name
        assert told.lines_of("\n".join(lines).replace("\0", " ")) == [], name
    for host in told.fleet.hosts:
        assert any("bench" in line and "--base-url" in line for line in told.command_lines[host.name])


def test_f10_no_secret_is_in_a_journal(told: Told) -> None:
    for name, text in told.journal().items():
        assert "ready to roll" in text, f"SGLang has not said on {name} that it started: this shows nothing"
        assert told.lines_of(text) == [], name


def test_f10_no_secret_is_in_a_file_of_a_host_but_those_meant_for_them(told: Told) -> None:
    release = re.compile(
        rf"{STATE}/services/{told.fleet.service}/releases/[0-9a-f]+/(secrets\.yaml|environment\.secret)"
    )
    for host in told.fleet.hosts:
        found, looked = witness.files_with(host, told.forms, since=told.host_began[host.name])
        assert looked > 20
        assert found
        for path, mode, _ in found:
            assert release.fullmatch(path), path
            assert mode == (0o400 if path.endswith("secrets.yaml") else 0o600), path
        # What SGLang says of itself is asked for and kept: where that is has been looked.
        kept = host.run(
            f"cd {STATE}/services/{told.fleet.service} && grep -rl max_running_requests records activations"
        )
        assert kept.stdout


def test_f10_only_the_servers_own_processes_have_a_secret_in_their_environment(told: Told) -> None:
    script = """\
for process in /proc/[0-9]*; do
    if tr '\\0' '\\n' < $process/environ 2>/dev/null | grep -qaF -f "$patterns"; then
        sed 's|.*/||' $process/cgroup | tail -n 1
    fi
done"""
    for host in told.fleet.hosts:
        keep = f"patterns=$(mktemp -p /dev/shm) && cat > $patterns\n{script}\nrm $patterns"
        units = set(host.run(keep, stdin="\n".join(told.forms) + "\n").stdout.split())
        assert units <= {told.fleet.unit}
        assert units or isinstance(told.fleet, OwnFleet), "HF_TOKEN is in none: this shows nothing"


def test_nobody_is_told_without_a_key(told: Told) -> None:
    for host in told.fleet.hosts:
        if told.fleet.key:
            assert told.fleet.ask(host, "/server_info", key=None)[0] == 401
        for path in ("/server_info", "/get_server_info", "/metrics", "/health"):
            _, said = told.fleet.ask(host, path, key=None)
            assert told.lines_of(str(said)) == [], path


def test_the_search_finds_what_lies_open(told: Told) -> None:
    value = f"planted-{secrets.token_hex(6)}"
    hidden = base64.b64encode(f"x{value}y".encode()).decode()
    places = [f"{folder}/sglang-fleet-test-{value[-6:]}" for folder in ("/dev/shm", "/run", "/var/lib")]  # noqa: S108
    for host in told.fleet.hosts:
        since = witness.clock(host)
        host.run(f"umask 077; tee {' '.join(places)} > /dev/null", stdin=hidden)
        try:
            with witness.command_lines([host]) as seen:
                host.run(f"sh -c 'sleep 1; : {value}'")
            found, _ = witness.files_with(host, spellings(value), since=since)
        finally:
            host.run(f"rm -f {' '.join(places)}")
        assert set(places) <= {path for path, _, _ in found}
        assert any(value in line for line in seen[host.name])


@pytest.mark.lab_only("it has SGLang print its keys")
def test_the_search_finds_what_sglang_prints_when_nothing_keeps_it_from_that(told: Told) -> None:
    """The last test: the journal has the keys from here on."""
    [host] = told.fleet.hosts
    dropin = f"/etc/systemd/system/{told.fleet.unit}.d/50-loud.conf"
    host.run(f"mkdir -p $(dirname {dropin}) && cat > {dropin}", stdin=LOUD_UNIT)
    try:
        host.run(f"systemctl daemon-reload; systemctl restart {told.fleet.unit}", timeout=300)
        wait_for(lambda: told.lines_of(told.journal()[host.name]), seconds=300, what="a key in the journal")
        assert "server_args=" in told.lines_of(told.journal()[host.name])[0]
    finally:
        host.run(
            f"rm -r $(dirname {dropin}); systemctl daemon-reload; systemctl restart {told.fleet.unit}", timeout=300
        )
