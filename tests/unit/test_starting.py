"""A new deployment folder: the project's own files, which load as they are."""

import tomllib
from pathlib import Path

import pytest

from sglang_fleet.lint.run import lint
from sglang_fleet.spec import Loaded, load
from sglang_fleet.starting import INVENTORY, LOCKED_RELEASE, SETTINGS, SHARED, NoHostName, starting_files

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


@pytest.mark.parametrize("name", [name for name in SHARED if name != SETTINGS])
def test_what_the_project_has_too_is_the_same_file(name: str) -> None:
    assert starting_files([])[name] == (PROJECT / name).read_text()


def test_the_example_has_a_depth_that_nobody_reported_wrong_answers_of() -> None:
    mine, own = starting_files([])[SETTINGS].splitlines(), (PROJECT / SETTINGS).read_text().splitlines()
    [(new, old)] = [pair for pair in zip(mine, own, strict=True) if pair[0] != pair[1]]
    assert old.strip().startswith("pp_async_batch_depth: 8 #")
    assert new.strip().startswith("pp_async_batch_depth: 1 #")
    assert len(new) <= 120


def test_a_name_of_a_release_is_that_of_its_lock_file() -> None:
    assert f"sglang=={LOCKED_RELEASE}\n" in starting_files([])[f"locks/sglang-{LOCKED_RELEASE}-cu130.in"]


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
    assert "SGL122" not in {finding.rule for finding in lint(loaded)}


def test_hosts_are_written_in_their_order_and_with_sudo_for_who_is_not_root() -> None:
    assert inventory("b.example.net", "deploy@a", "root@10.0.0.1", "fd00::1", "gpu_1") == [
        ("b.example.net", {"ssh_user": "root"}),
        ("a", {"ssh_user": "deploy", "_sudo": True}),
        ("10.0.0.1", {"ssh_user": "root"}),
        ("fd00::1", {"ssh_user": "root"}),
        ("gpu_1", {"ssh_user": "root"}),
    ]


def test_a_port_goes_beside_the_host() -> None:
    assert inventory("root@x:2222", "deploy@gpu-1.example.net:22", "[fd00::1]:2222", "root@[fd00::2]") == [
        ("x", {"ssh_user": "root", "ssh_port": 2222}),
        ("gpu-1.example.net", {"ssh_user": "deploy", "ssh_port": 22, "_sudo": True}),
        ("fd00::1", {"ssh_user": "root", "ssh_port": 2222}),
        ("fd00::2", {"ssh_user": "root"}),
    ]


@pytest.mark.parametrize("host", ["h:0", "h:65536", "h:99999"])
def test_a_port_that_is_none(host: str) -> None:
    with pytest.raises(NoHostName, match="is no port"):
        starting_files([host])


def test_only_the_hosts_of_the_inventory_differ_from_the_example() -> None:
    example, mine = starting_files([]), starting_files(["h1"])
    assert {name for name in example if example[name] != mine[name]} == {INVENTORY}
    assert mine[INVENTORY].startswith(example[INVENTORY].partition("k26 =")[0])


@pytest.mark.parametrize(
    "host",
    [
        "",
        " ",
        "a b",
        "@local",
        "a,b",
        'x"y',
        "x\ny",
        "-a",
        "a\\",
        "u ser@h",
        "é",
        "a@b@c",
        "h:",
        "h:x",
        "[h",
        "_a",
        "a:b:c@",
    ],
)
def test_what_is_no_name_of_a_host(host: str) -> None:
    with pytest.raises(NoHostName, match="is no name of a host"):
        starting_files([host])


def test_a_host_stands_in_the_inventory_once() -> None:
    with pytest.raises(NoHostName, match="h1 is there twice"):
        starting_files(["h1", "root@h1"])


def test_secrets_beside_the_settings_are_kept_out_of_the_history() -> None:
    assert {"/secrets/", ".env"} <= set(starting_files([])[".gitignore"].splitlines())
