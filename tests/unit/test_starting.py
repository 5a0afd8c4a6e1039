"""A new deployment folder: the project's own files, which load as they are."""

import tomllib
from pathlib import Path

import pytest

from sglang_fleet.lint.run import lint
from sglang_fleet.spec import Loaded, load
from sglang_fleet.starting import INVENTORY, SHARED, NoHostName, starting_files

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    """What the settings of a new folder say."""
    for name, text in starting_files([]).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return load(
        folder=tmp_path, hosts={"h1": ["k26", "prod"]}, overrides={}, known_hosts=["h1"], known_groups=["k26", "prod"]
    )


def inventory(*hosts: str) -> list[object]:
    """The list of hosts in the inventory of a new folder."""
    names: dict[str, list[object]] = {}
    exec(starting_files(hosts)[INVENTORY], names)  # noqa: S102  # as pyinfra does
    return names["k26"]


@pytest.mark.parametrize("name", SHARED)
def test_what_the_project_has_too_is_the_same_file(name: str) -> None:
    assert starting_files([])[name] == (PROJECT / name).read_text()


def test_an_installed_package_has_every_file() -> None:
    wheel = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    included = wheel["force-include"]
    assert included["templates"] == "sglang_fleet/templates"
    assert {name: included.get(name) for name in SHARED} == {
        name: f"sglang_fleet/templates/init/{name}" for name in SHARED
    }
    assert (PROJECT / "templates/init/README.md").is_file()
    assert (PROJECT / "templates/init/gitignore").is_file()


def test_the_example_has_no_problem(loaded: Loaded) -> None:
    assert loaded.problems == []
    assert list(loaded.deployments["h1"].services) == ["k26"]
    assert loaded.strays == ()


def test_the_example_is_good_advice(loaded: Loaded) -> None:
    assert [finding for finding in lint(loaded) if finding.severity != "note"] == []


def test_hosts_are_written_in_their_order_and_with_sudo_for_who_is_not_root() -> None:
    assert inventory("b.example.net", "deploy@a", "root@10.0.0.1", "fd00::1") == [
        ("b.example.net", {"ssh_user": "root"}),
        ("a", {"ssh_user": "deploy", "_sudo": True}),
        ("10.0.0.1", {"ssh_user": "root"}),
        ("fd00::1", {"ssh_user": "root"}),
    ]


def test_only_the_hosts_of_the_inventory_differ_from_the_example() -> None:
    example, mine = starting_files([]), starting_files(["h1"])
    assert {name for name in example if example[name] != mine[name]} == {INVENTORY}
    assert mine[INVENTORY].startswith(example[INVENTORY].partition("k26 =")[0])


@pytest.mark.parametrize("host", ["", " ", "a b", "@local", "a,b", 'x"y', "x\ny", "-a", "a\\", "u ser@h", "é", "a@b@c"])
def test_what_is_no_name_of_a_host(host: str) -> None:
    with pytest.raises(NoHostName, match="is no name of a host"):
        starting_files([host])


def test_a_host_stands_in_the_inventory_once() -> None:
    with pytest.raises(NoHostName, match="h1 is there twice"):
        starting_files(["h1", "root@h1"])


def test_secrets_beside_the_settings_are_kept_out_of_the_history() -> None:
    assert {"/secrets/", ".env"} <= set(starting_files([])[".gitignore"].splitlines())
