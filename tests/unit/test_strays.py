"""Files of settings that belong to no host and no group."""

from pathlib import Path

import pytest

from sglang_fleet.spec import load
from sglang_fleet.variables import gather

HOSTS = ["h1", "h2", "h3"]
GROUPS = ["lab", "prod"]


def strays(folder: Path, *names: str, hosts: list[str] | None = None, groups: list[str] | None = None) -> list[str]:
    """The strays among these files (and folders, which end in `/`), with h1 as the only host of the run."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if name.endswith("/") else path.write_text("{}")
    found = gather(folder=folder, hosts={"h1": ["lab"]}, overrides={}, known_hosts=hosts, known_groups=groups)
    assert not found.problems
    return [str(path.relative_to(folder)) for path in found.strays]


@pytest.mark.parametrize("name", ["host_vars/h9.yml", "host_vars/h9.yaml", "host_vars/h9/", "host_vars/gpu1.lab/"])
def test_a_host_that_is_not_in_the_inventory_is_a_stray(tmp_path: Path, name: str) -> None:
    assert strays(tmp_path, name, hosts=HOSTS, groups=GROUPS) == [name.rstrip("/")]


def test_hosts_outside_of_the_limit_are_none(tmp_path: Path) -> None:
    assert strays(tmp_path, "host_vars/h1.yml", "host_vars/h3.yml", "host_vars/h2/", hosts=HOSTS, groups=GROUPS) == []


@pytest.mark.parametrize("name", ["labb.yml", "Lab.yml", "pord.yml", "prod2/", "alll.yml", "h1.yml", "lba.yml"])
def test_a_group_much_like_one_of_the_inventory_is_a_stray(tmp_path: Path, name: str) -> None:
    assert strays(tmp_path, f"group_vars/{name}", hosts=HOSTS, groups=GROUPS) == [f"group_vars/{name.rstrip('/')}"]


def test_groups_of_other_inventories_are_none(tmp_path: Path) -> None:
    names = ("all.yml", "lab.yml", "prod/", "berlin.yml", "lax.yml")
    assert strays(tmp_path, *(f"group_vars/{name}" for name in names), hosts=HOSTS, groups=GROUPS) == []


def test_what_holds_no_settings_is_none(tmp_path: Path) -> None:
    names = ("README.md", "h9", ".h9.yml", "h9.yml~", "h9.yml.orig")
    assert strays(tmp_path, *(f"host_vars/{name}" for name in names), hosts=HOSTS, groups=GROUPS) == []


def test_without_the_whole_inventory_nothing_is_known_to_be_one(tmp_path: Path) -> None:
    assert strays(tmp_path, "host_vars/h9.yml", "group_vars/labb.yml") == []
    assert strays(tmp_path, hosts=HOSTS) == ["host_vars/h9.yml"]


def test_the_loader_hands_them_on(tmp_path: Path) -> None:
    strays(tmp_path, "host_vars/h9.yml", "group_vars/labb.yml")
    loaded = load(folder=tmp_path, hosts={}, overrides={}, known_hosts=HOSTS, known_groups=GROUPS)
    assert loaded.strays == (tmp_path / "group_vars/labb.yml", tmp_path / "host_vars/h9.yml")
    assert not loaded.problems
