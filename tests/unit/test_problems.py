from pathlib import Path

from sglang_fleet.problems import Problem, grouped, render

HERE = Path("/project")
TP = Problem(HERE / "group_vars/all.yml", 12, "services.k26.args.tp_size", "expects a whole number, got 'eight'")


def of(host: str, problem: Problem = TP) -> Problem:
    return Problem(problem.file, problem.line, problem.key, problem.message, problem.fix, (host,))


def test_the_same_problem_of_several_hosts_is_one_paragraph_that_names_them() -> None:
    assert render([of("h1"), of("h2"), of("h3")], relative_to=HERE) == (
        "group_vars/all.yml:12  services.k26.args.tp_size\n    expects a whole number, got 'eight' (h1, h2, h3)"
    )


def test_problems_are_sorted_by_file_and_line() -> None:
    late = Problem(HERE / "group_vars/all.yml", 40, "rollout", "late")
    assert [problem.line for problem in grouped([late, of("h1")])] == [12, 40]


def test_a_fix_has_a_line_of_its_own() -> None:
    problem = Problem(HERE / "host_vars/h1.yml", 1, "cuda", "is wrong", "put it right")
    assert render([problem], relative_to=HERE).splitlines()[-1] == "    fix: put it right"


def test_many_hosts_are_counted_not_listed() -> None:
    assert "h7, h8 and 16 more)" in render([of(f"h{number}") for number in range(1, 25)]).replace("\n      ", " ")


def test_no_line_is_wider_than_80_columns() -> None:
    text = render([of(f"gpu-host-{number}.example.com") for number in range(24)], relative_to=HERE)
    assert max(map(len, text.splitlines())) <= 80


def test_an_override_says_where_it_comes_from_once() -> None:
    whole = Problem(None, None, "rolout", "no such setting", source="--data rolout")
    inner = Problem(None, None, "rollout.waves", "goes down", source="--data rollout")
    assert [line for line in render([whole, inner]).splitlines() if line[0] != " "] == [
        "--data rollout  rollout.waves",
        "--data rolout",
    ]


def test_a_file_elsewhere_keeps_its_whole_name() -> None:
    assert render([TP], relative_to=Path("/other")).startswith("/project/group_vars/all.yml:12  ")


def test_a_key_cannot_move_the_terminals_cursor() -> None:
    assert "\x1b" not in render([Problem(HERE / "a.yml", 1, "\x1b[2Jcuda", "is \x1b[31mred")])


def test_nothing_wrong_is_no_text() -> None:
    assert render([]) == ""
