"""Where a reader is sent for what only the merge of several files made wrong."""

from collections.abc import Callable
from pathlib import Path

from sglang_fleet.problems import render
from sglang_fleet.spec import Loaded

EXAMPLE = Path(__file__).parents[3] / "group_vars/all.yml"
Write = Callable[..., Loaded]
ONE_OF = "write exactly one of {env: NAME}, {file: PATH} or {command: COMMAND}"


def line_of(folder: Path, text: str) -> int:
    """The line of `group_vars/all.yml` that holds a text."""
    lines = (folder / "group_vars/all.yml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def secret(key: str) -> str:
    return f"# the lab's own\nservices:\n  k26:\n    secrets:\n      api_key: {{{key}}}\n"


# One rollout.


def test_another_rollout_is_named_where_the_host_has_it(write: Write, tmp_path: Path) -> None:
    loaded = write(hosts=("h1", "h2", "h3"), host_vars__h2="# mine\nrollout:\n  failure_budget: 1\n")
    assert render(loaded.problems, relative_to=tmp_path) == (
        "host_vars/h2.yml:3  rollout.failure_budget\n"
        "    differs from that of h1, and a run has one rollout (h2)\n"
        "    fix: set it in group_vars/all.yml only"
    )


def test_the_few_differ_from_the_many_even_if_they_come_first(write: Write, tmp_path: Path) -> None:
    loaded = write(hosts=("h1", "h2", "h3"), host_vars__h1="rollout:\n  waves: [1, 100%]\n")
    (problem,) = loaded.problems
    assert (problem.file, problem.line, problem.key) == (tmp_path / "host_vars/h1.yml", 2, "rollout.waves")
    assert problem.message.startswith("differs from that of h2")
    assert problem.hosts == ("h1",)


def test_every_part_of_a_rollout_that_differs_is_named(write: Write) -> None:
    loaded = write(hosts=("h1", "h2"), host_vars__h2="rollout:\n  on_failure: host\n  failure_budget: 2\n")
    assert [(problem.line, problem.key) for problem in loaded.problems] == [
        (2, "rollout.on_failure"),
        (3, "rollout.failure_budget"),
    ]


def test_a_part_that_is_removed_counts_as_its_default(write: Write) -> None:
    text = "rollout:\n  on_failure: null\n  failure_budget: null\n  waves: [100%]"
    (problem,) = write(hosts=("h1", "h2"), host_vars__h2=text).problems
    assert (problem.line, problem.key) == (4, "rollout.waves")


def test_a_part_removed_for_one_host_is_placed_at_its_null(write: Write, tmp_path: Path) -> None:
    (problem,) = write(
        hosts=("h1", "h2"), group_vars__prod="rollout: {failure_budget: 1}", host_vars__h2="rollout:\n  failure_budget:"
    ).problems
    assert (problem.file, problem.line) == (tmp_path / "host_vars/h2.yml", 2)


def test_a_whole_rollout_removed_for_one_host_is_placed_at_its_null(write: Write, tmp_path: Path) -> None:
    text = "rollout: null"
    (problem,) = write(hosts=("h1", "h2"), group_vars__prod="rollout: {failure_budget: 1}", host_vars__h2=text).problems
    assert (problem.file, problem.line) == (tmp_path / "host_vars/h2.yml", 1)


def test_a_part_that_only_the_others_have_is_placed_at_theirs(write: Write, tmp_path: Path) -> None:
    example = EXAMPLE.read_text().partition("rollout:")[0]
    text = "rollout:\n  waves: [1, 25%, 100%]\n  failure_budget: 1\n"
    (problem,) = write(hosts=("h1", "h2"), group_vars__all=example, host_vars__h1=text).problems
    assert (problem.file, problem.line, problem.hosts) == (tmp_path / "host_vars/h1.yml", 3, ("h2",))
    assert problem.message == "is set for h1 and not for every host, and a run has one rollout"


# One source.


def test_a_second_source_is_named_where_it_is_added(write: Write, tmp_path: Path) -> None:
    loaded = write(group_vars__prod=secret("file: keys/k26"))
    first = line_of(tmp_path, "api_key: {env")
    assert render(loaded.problems, relative_to=tmp_path) == (
        "group_vars/prod.yml:5  services.k26.secrets.api_key.file\n"
        "    is one source too many (h1)\n"
        f"    fix: merging keeps both: add `env: null` to drop the one from\n      group_vars/all.yml:{first}"
    )


def test_the_fix_works(write: Write) -> None:
    loaded = write(group_vars__prod=secret("file: keys/k26, env: null"))
    assert not loaded.problems


def test_the_strongest_file_is_the_one_to_change(write: Write, tmp_path: Path) -> None:
    """The host's `env` stands where that of `all` stood, before the group's `file`, and is still the last word."""
    loaded = write(group_vars__prod=secret("file: keys/k26"), host_vars__h1=secret("env: OWN"))
    (problem,) = loaded.problems
    assert (problem.file, problem.line, problem.key) == (
        tmp_path / "host_vars/h1.yml",
        5,
        "services.k26.secrets.api_key.env",
    )
    assert problem.fix == "merging keeps both: add `file: null` to drop the one from group_vars/prod.yml:5"


def test_a_file_that_only_drops_is_not_the_one_that_adds(write: Write, tmp_path: Path) -> None:
    loaded = write(group_vars__prod=secret("file: keys/k26"), host_vars__h1=secret("command: null"))
    (problem,) = loaded.problems
    assert problem.file == tmp_path / "group_vars/prod.yml"


def test_three_sources_of_three_files(write: Write, tmp_path: Path) -> None:
    loaded = write(group_vars__prod=secret("file: keys/k26"), host_vars__h1=secret("command: pass k26"))
    (problem,) = loaded.problems
    first = line_of(tmp_path, "api_key: {env")
    assert problem.fix == (
        f"merging keeps all: add `env: null` to drop the one from group_vars/all.yml:{first}, "
        "and `file: null` to drop the one from group_vars/prod.yml:5"
    )


def test_two_sources_in_one_file_are_no_matter_of_merging(write: Write, tmp_path: Path) -> None:
    loaded = write(group_vars__prod=secret("file: keys/k26, command: pass k26, env: null"))
    (problem,) = loaded.problems
    assert (problem.file, problem.line, problem.key, problem.fix) == (
        tmp_path / "group_vars/prod.yml",
        5,
        "services.k26.secrets.api_key",
        ONE_OF,
    )


def test_a_second_source_from_data(write: Write, tmp_path: Path) -> None:
    loaded = write(overrides={"services.k26.secrets.api_key.file": "keys/k26"})
    (problem,) = loaded.problems
    where = f"group_vars/all.yml:{line_of(tmp_path, 'api_key: {env')}"
    assert problem.source == "--data services.k26.secrets.api_key.file"
    assert problem.fix == (
        f"merging keeps both: add `--data services.k26.secrets.api_key.env=null` to drop the one from {where}"
    )


def test_a_service_of_an_impossible_name_is_no_obstacle(write: Write) -> None:
    loaded = write(group_vars__prod=secret("file: f, env: E").replace("k26", '"[key]"'))
    assert "needs one source" in [problem.message for problem in loaded.problems]


def test_no_source_at_all(write: Write) -> None:
    (problem,) = write(group_vars__prod=secret("env: null")).problems
    assert (problem.key, problem.message, problem.fix) == ("services.k26.secrets.api_key", "needs one source", ONE_OF)
