"""Any argument and any variable reaches the server as it was written, through the real template and a real systemd.

Only the venv's python is replaced, by a recorder that keeps its command line and environment as the kernel has them.
Many services go through one daemon-reload, so that hundreds of command lines take seconds.
"""

import base64
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lab import Host
from sglang_fleet.catalog import catalogue
from sglang_fleet.release import Release, make_release
from sglang_fleet.render import STATE, command_words
from sglang_fleet.spec import Service
from sglang_fleet.spec.arguments import SECRETS, Arguments
from sglang_fleet.systemd_text import is_environment_value

VERSION = "0.5.23"
VENV = "recorder"
BATCH = 32  # services of one daemon-reload
BATCHES = 10

# The shell neither splits nor decodes what it copies, unlike a program that has to print it.
RECORDER = """\
#!/bin/sh
cat /proc/$$/cmdline > cmdline.new
cat /proc/$$/environ > environ.new
mv cmdline.new cmdline
mv environ.new environ
"""

# On the host: {"files": {path: text}, "units": {name: folder}} → what systemd says, and each unit's two records.
DRIVER = """\
import base64, json, os, shutil, subprocess, sys, time
request = json.load(sys.stdin)
for path, text in request["files"].items():
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text.encode())
    os.chmod(path, 0o755 if text.startswith("#!") else 0o644)
units = request["units"]
for folder in units.values():
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
paths = ["/etc/systemd/system/" + unit for unit in units]
said = [
    subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode("utf-8", "replace")
    for command in (
        ["systemctl", "daemon-reload"],
        ["systemd-analyze", "--man=no", "--recursive-errors=no", "verify", *paths],
        ["systemctl", "start", *units],
    )
]
records = {}
deadline = time.monotonic() + (1 if said[-1] else 30)
for unit, folder in units.items():
    while not os.path.exists(folder + "/environ") and time.monotonic() < deadline:
        time.sleep(0.01)
    records[unit] = [
        base64.b64encode(open(folder + "/" + name, "rb").read()).decode() if os.path.exists(folder + "/" + name) else ""
        for name in ("cmdline", "environ")
    ]
subprocess.run(["systemctl", "stop", *units])
for path in paths:
    os.unlink(path)
print(json.dumps({"said": said, "records": records}))
"""

NASTY = (
    "-",
    "--",
    "-x",
    "- x",
    ";",
    "; rm -rf /",
    "\\;",
    "#",
    "# not a comment",
    "$",
    "$$",
    "$HOME",
    "${HOME}",
    "$$HOME",
    "${NO_SUCH}",
    "a$HOME b",
    "%",
    "%%",
    "%n",
    "%h/%i",
    "100%",
    "%{a}",
    "\\",
    "\\\\",
    "\\n",
    "\\x41",
    "\\u0041",
    "\\101",
    "a\\",
    "a\\\n",
    "\n",
    "\nExecStart=/bin/false",
    "a\n# b\n; c",
    "\r",
    "\r\n",
    "\t",
    " ",
    " a",
    "a ",
    "a\tb",
    '"',
    "'",
    '"\'"',
    'say "hi"',
    "it's",
    '"a" "b"',
    "a\"b'c",
    "=",
    "@/bin/true",
    "!x",
    "+x",
    "|x",
    "~",
    "*",
    "[Service]",
    "{}",
    '{"temperature": 0.6, "stop": ["\\n", "$x", "100%"]}',
    '{"a": {"b": "it\'s \\"quoted\\""}}',
    "größe",
    "日本語",
    "🙂",
    "e\u0301",
    "\u00a0",
    "\u2028",
    "\u200b",
    "\ufeff",
    "\ufffd",
    "\x01\x02\x1b[31m\x7f",
    "\x80\x9f",
    "\ufffe",
    "\U0001ffff",
    "\ufdd0",
    "\U0010fffd",
    "`id`",
    "$(id)",
    "a&&b||c",
    "<in >out",
)
FOLDERS = "/srv/plain", "/srv/my models", '/srv/100% $HOME "a" it\'s', "/srv/back\\slash\\", "/srv/größe;#"
# What an argument of a process can be: anything but a NUL; a lone surrogate is no character.
characters = st.characters(codec="utf-8", exclude_characters="\0")
texts = st.one_of(
    st.sampled_from(NASTY),
    st.text(characters, max_size=12),
    st.text("\"'\\%$;#{}=-@ \t\n\rab0", max_size=12),
    st.lists(st.sampled_from(NASTY), min_size=2, max_size=4).map("".join),
)


def is_extra(word: str) -> bool:
    return bool(word.strip()) and word.partition("=")[0].removeprefix("--").replace("-", "_") not in {
        *Arguments.model_fields,
        *SECRETS,
        "config",
    }


KNOWN = catalogue(VERSION)
FREE = [
    argument
    for argument in KNOWN.arguments
    if argument.kind in ("str", "json")
    and argument.choices is None
    and argument.nargs != "?"
    and argument.name not in {*Arguments.model_fields, *SECRETS, "config"}
]
FREE_TEXTS = [argument.name for argument in FREE if argument.kind == "str" and argument.nargs is None]


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, Any]:
    """The model's path and some arguments of the catalogue, with any text that it lets through."""
    found: dict[str, Any] = {"model_path": draw(texts.filter(lambda text: bool(text.strip())))}
    for argument in draw(st.lists(st.sampled_from(FREE), max_size=3, unique_by=lambda one: one.name)):
        value = draw(st.lists(texts, min_size=1, max_size=3) if argument.nargs else texts)
        if KNOWN.check(argument.name, value) is None:
            found[argument.name] = value
    return found


names = st.from_regex(r"V[A-Za-z0-9_]{0,8}", fullmatch=True)
variables = st.dictionaries(names, texts.filter(is_environment_value), max_size=3)
services = st.fixed_dictionaries(
    {
        "args": arguments(),
        "extra_args": st.lists(texts.filter(is_extra), max_size=3),
        "environment": variables,
        # Upper case, and so never one of those above.
        "secrets": st.dictionaries(
            st.sampled_from(["TOKEN", "HF_TOKEN", "api_key"]), texts.filter(is_environment_value)
        ),
    }
)


@dataclass(frozen=True)
class Seen:
    """What systemd said about the units, and what each service was started with."""

    said: list[str]
    started: list[tuple[list[bytes], dict[bytes, bytes]]]


def made(number: int, wanted: Mapping[str, Any]) -> tuple[Service, Release]:
    """A service with these settings and its release, made as a deploy makes it."""
    values = wanted["secrets"]
    sources = {name: {"env": "X"} for name in values}
    service = Service.model_validate({"name": f"t{number}", "user": "root", **wanted, "secrets": sources})
    release = make_release(
        service=service,
        version=VERSION,
        venv_id=VENV,
        cuda_home="/usr/local/cuda-13.0",
        secrets=values,
        fingerprints=dict.fromkeys(values, ""),
    )
    return service, release


def run(host: Host, all_made: list[tuple[Service, Release]]) -> Seen:
    """Start every service on the host, and give back what each was started with."""
    files = {f"{STATE}/venvs/{VENV}/bin/python": RECORDER}
    for _, release in all_made:
        files[f"/etc/systemd/system/{release.unit_name}"] = release.text("unit")
        files |= {f"{release.places.release_folder}/{file.name}": file.text for file in release.files}
    units = {
        release.unit_name: service.working_directory or f"/var/lib/sglang/{service.name}"
        for service, release in all_made
    }
    request = {"files": files, "units": units}
    told = json.loads(host.run(f"python3 -c {shlex.quote(DRIVER)}", stdin=json.dumps(request)).stdout)
    started = []
    for unit in units:
        words, variables = (base64.b64decode(record).split(b"\0")[:-1] for record in told["records"][unit])
        # The kernel puts the interpreter of a script before it.
        started.append((words[1:], dict(variable.split(b"=", 1) for variable in variables)))
    return Seen(told["said"], started)


def expected_words(service: Service, release: Release) -> list[bytes]:
    places = release.places
    lists = command_words(service, version=VERSION, venv=places.venv, release_folder=places.release_folder)
    return [word.encode() for words in lists for word in words]


def expected_variables(service: Service, secrets: Mapping[str, str]) -> dict[bytes, bytes]:
    upper = {name: value for name, value in secrets.items() if name.isupper()}
    return {name.encode(): value.encode() for name, value in {**service.environment, **upper}.items()}


def differences(host: Host, batch: list[dict[str, Any]]) -> list[str]:
    """Everything that did not come back as it was written, and every word that systemd had to say."""
    all_made = [made(number, wanted) for number, wanted in enumerate(batch)]
    seen = run(host, all_made)
    found = [f"systemd said: {text}" for text in seen.said if text]
    for (service, release), wanted, (words, variables) in zip(all_made, batch, seen.started, strict=True):
        if words != expected_words(service, release):
            found.append(f"{service.args!r} {service.extra_args!r} came back as {words}"[:2000])
        for name, value in expected_variables(service, wanted["secrets"]).items():
            if variables.get(name) != value:
                found.append(f"{name!r}={value!r} came back as {variables.get(name)!r}"[:2000])
        if variables.get(b"SGLANG_FLEET_RELEASE") != release.id.encode():
            found.append(f"{service.name} was not started with its release's environment")
    return found


def plain(**changes: Any) -> dict[str, Any]:
    return {"args": {"model_path": "/m"}, "extra_args": [], "environment": {}, "secrets": {}, **changes}


WRITABLE = [text for text in NASTY if is_environment_value(text)]
EACH = [
    plain(extra_args=[text for text in NASTY if is_extra(text)]),
    plain(args={"model_path": "/m", **dict(zip(FREE_TEXTS, (text for text in NASTY if text != "--"), strict=False))}),
    plain(environment={f"V{number}": text for number, text in enumerate(WRITABLE)}),
    *(plain(secrets={"HF_TOKEN": text}) for text in WRITABLE[:5]),
    plain(args={"model_path": "/m", "chat_template": ""}, environment={"V": ""}),
    plain(args={"model_path": "/m", "chat_template": "x" * 100_000}, environment={"V": '"$%\\' * 25_000}),
    plain(args={"model_path": "/m", "chat_template": '%$"\\\n' * 20_000}),
    plain(extra_args=[f"word {number}" for number in range(1000)]),
]


def test_what_is_special_to_somebody_comes_back_as_it_was_written(host: Host) -> None:
    assert differences(host, EACH) == []


# No shrinking: each step of it would be another batch, and a failure names its words already.
@settings(
    max_examples=BATCHES,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(services, min_size=BATCH, max_size=BATCH))
def test_any_argument_and_any_variable_comes_back_as_it_was_written(host: Host, batch: list[dict[str, Any]]) -> None:
    assert differences(host, batch) == []


def test_a_folder_of_any_name_can_be_worked_in_and_written_to(host: Host) -> None:
    """The recorder writes where it works, which ProtectSystem=strict allows in writable_paths alone."""
    batch = [plain(working_directory=folder, writable_paths=[folder], description=folder) for folder in FOLDERS]
    assert differences(host, batch) == []
