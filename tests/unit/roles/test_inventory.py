"""Inventories are read as pyinfra reads them: same hosts, same groups, same order."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roles.inventory import Hosts, InventoryUnusable, read_inventory

INVENTORY = """\
import os
from beside import NAMES

print("loading")
mixed = ["h3", ("h1", {"ssh_user": "me"}), "@local"]
_hidden = ["h9"]
named = (NAMES, {"_sudo": True})
all = ["h2", "h1", "h3", "h4", "@local"]
lonely = []
folder = os.getcwd()
"""
# What a deploy gives to spec.load, taken from a real run up to the point where it would connect.
DEPLOY = """\
import json, os, sys
from pyinfra_cli import cli
from roles import preflight

def connect_all(state):
    for host in state.inventory:
        state.activate_host(host)

def load(**given):
    keys = ("hosts", "overrides", "known_hosts", "known_groups", "groups", "ordered")
    print("GIVEN", json.dumps({key: given[key] for key in keys}))
    sys.stdout.flush()
    os._exit(0)

cli.connect_all = connect_all
preflight.load = load
cli.cli(standalone_mode=False)
"""
DATA = ["services.k26.args.port=30002", "ssh_user=x", "rollout.waves=[1]", "quiet=True", "text=a=b"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "inventory/prod.py").write_text(INVENTORY)
    (tmp_path / "beside.py").write_text('NAMES = ["h2", "h4"]')
    (tmp_path / "deploy.py").write_text("from roles import preflight\npreflight.look()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    return tmp_path


def unusable(folder: Path, text: str) -> str:
    (folder / "inventory/prod.py").write_text(text)
    with pytest.raises(InventoryUnusable) as error:
        read_inventory("inventory/prod.py", folder=folder)
    return str(error.value)


def given_to_load(folder: Path, inventory: str, *options: str) -> dict[str, Any]:
    """What a deploy gives to spec.load."""
    output = subprocess.run(
        [sys.executable, "-c", DEPLOY, inventory, "deploy.py", "--dry", "-y", *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in output.stdout.splitlines() if line.startswith("GIVEN ")]
    assert lines, output.stderr
    return dict(json.loads(lines[0].removeprefix("GIVEN ")))


def test_a_deploy_gets_exactly_the_same(folder: Path) -> None:
    given = given_to_load(folder, "inventory/prod.py", *(word for value in DATA for word in ("--data", value)))
    found = read_inventory("inventory/prod.py", folder=folder, data=DATA)
    assert list(given["hosts"].items()) == list(found.hosts.items())
    assert list(found.hosts) == ["h2", "h1", "h3", "h4", "@local"]
    assert given["known_hosts"] == list(found.hosts)
    assert given["known_groups"] == list(found.groups)
    assert given["overrides"] == found.overrides
    assert list(given["groups"].items()) == list(found.groups.items())
    assert given["ordered"] is found.ordered is True


def test_the_hosts_of_a_group_stand_in_the_inventorys_own_order_once_each(folder: Path) -> None:
    (folder / "inventory/prod.py").write_text("pairs = ['h3', 'h1', 'h2']\nall = ['h1', 'h2', 'h1', 'h3']\n")
    found = read_inventory("inventory/prod.py", folder=folder)
    assert list(found.hosts) == ["h1", "h2", "h3"]
    assert found.groups["pairs"] == ["h1", "h2", "h3"]


@pytest.mark.parametrize("word", ["made.hosts", "made:hosts"])
def test_f43_a_function_gives_its_hosts_in_no_order(folder: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    (folder / "made.py").write_text("def hosts():\n    return {'pairs': ['h1', 'h2']}\nnames = ['h1', 'h2']\n")
    monkeypatch.delitem(sys.modules, "made", raising=False)
    monkeypatch.syspath_prepend(str(folder))
    found = read_inventory(word, folder=folder)
    assert set(found.groups["pairs"]) == {"h1", "h2"}
    assert not found.ordered
    assert read_inventory("made.names", folder=folder).ordered
    assert given_to_load(folder, word)["ordered"] is False


def test_a_list_of_hosts_is_an_inventory(folder: Path) -> None:
    found = read_inventory("h1,h2,@local", folder=folder)
    assert found.hosts == {"h1": [], "h2": [], "@local": ["@local", "@local"]}


def test_local_is_an_inventory(folder: Path) -> None:
    assert list(read_inventory("@local", folder=folder).hosts) == ["@local"]


def test_what_an_inventory_prints_stays_out_of_results(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_inventory("inventory/prod.py", folder=folder)
    assert capsys.readouterr() == ("", "loading\n")


def test_an_inventory_runs_in_the_deployment_folder_and_nothing_stays_changed(folder: Path) -> None:
    (folder / "inventory/prod.py").write_text("import os\nhosts = [os.getcwd(), __file__]\n")
    elsewhere = folder / "inventory"
    os.chdir(elsewhere)
    path = list(sys.path)
    assert list(read_inventory("prod.py", folder=folder).hosts) == [str(folder), "inventory/prod.py"]
    assert Path.cwd() == elsewhere
    assert sys.path == path


def test_nothing_is_written_beside_an_inventory(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    read_inventory("inventory/prod.py", folder=folder)
    assert sorted(folder.rglob("*")) == before


def test_a_file_is_read_again_when_it_has_changed(folder: Path) -> None:
    for host in ("h1", "h2"):
        (folder / "inventory/prod.py").write_text(f"hosts = ['{host}']")
        assert list(read_inventory("inventory/prod.py", folder=folder).hosts) == [host]


def test_a_process_that_reads_an_inventory_keeps_its_standard_library(folder: Path) -> None:
    program = (
        "import socket, pathlib, roles.inventory as i; before = socket.socket; "
        "i.read_inventory('h1,h2', folder=pathlib.Path()); print(socket.socket is before)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


def test_what_pyinfra_warns_of_is_kept_as_a_note(folder: Path) -> None:
    (folder / "inventory/prod.py").write_text("hosts = ['h1']\nnumbers = [1]\n")
    found = read_inventory("inventory/prod.py", folder=folder)
    assert isinstance(found, Hosts)
    (note,) = found.notes
    assert note.startswith('Ignoring host group "numbers"')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hosts = ['h1'\n", "inventory/prod.py:1: '[' was never closed"),
        ("\nhosts = [nobody]\n", "inventory/prod.py:2: NameError: name 'nobody' is not defined"),
        ("import no_such_module\n", "inventory/prod.py:1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("import json\n\njson.loads('{')", "inventory/prod.py:3: JSONDecodeError: Expecting property name"),
        ("raise SystemExit('the lab is down')", "inventory/prod.py:1: the lab is down"),
        ("import sys\nsys.exit()", "inventory/prod.py:2: it ends itself"),
        (
            "from pyinfra.api.exceptions import InventoryError\nraise InventoryError('no lab')\n",
            "inventory/prod.py:2: no lab",
        ),
        ("hosts = ['@nothing']\n", "inventory/prod.py: Invalid connector: nothing"),
        ("hosts = [('h1', 'me')]\n", "inventory/prod.py: pyinfra cannot use it (ValueError: dictionary update"),
        ("hosts = []\n", "inventory/prod.py names no host"),
        ("hosts = 'h1'\n", "inventory/prod.py names no host"),
        ("hosts = [1]\n", 'Ignoring host group "hosts"'),
    ],
)
def test_an_error_is_said_with_file_and_line(folder: Path, text: str, said: str) -> None:
    assert unusable(folder, text).startswith(said)


def test_an_error_in_a_file_beside_the_inventory_names_that_file(folder: Path) -> None:
    (folder / "broken.py").write_text("\n\n1 / 0\n")
    assert unusable(folder, "import broken") == "broken.py:3: ZeroDivisionError: division by zero"


def test_a_file_that_is_no_text_is_said(folder: Path) -> None:
    (folder / "inventory/prod.py").write_bytes(b"\xff\xfe")
    with pytest.raises(InventoryUnusable, match=r"^inventory/prod\.py: .*utf-8"):
        read_inventory("inventory/prod.py", folder=folder)


def test_a_folder_is_no_inventory(folder: Path) -> None:
    with pytest.raises(InventoryUnusable, match=r"^inventory: .*[Ii]s a directory"):
        read_inventory("inventory", folder=folder)


def test_an_inventory_that_is_not_there_is_said_with_those_that_are(folder: Path) -> None:
    with pytest.raises(InventoryUnusable, match=r"^inventory/prd\.py is not there; there is inventory/prod\.py$"):
        read_inventory("inventory/prd.py", folder=folder)


def test_the_network_is_not_asked_about_a_file_that_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object, **__: object) -> None:
        pytest.fail("the network was asked")

    monkeypatch.setattr("socket.getaddrinfo", asked)
    with pytest.raises(InventoryUnusable, match="is not there"):
        read_inventory("prod.py", folder=folder)
