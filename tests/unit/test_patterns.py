"""Which names that choose hosts choose none."""

import pytest

from sglang_fleet.patterns import given, nobody

HOSTS = ["gpu-1", "gpu-2", "spare"]
GROUPS = {"pairs": ["gpu-1", "gpu-2"]}


@pytest.mark.parametrize("pattern", ["gpu-1", "gpu-*", "pairs", "[gs]p*", "spare"])
@pytest.mark.parametrize("option", ["--limit", "--exclude"])
def test_what_matches_a_host_is_not_mentioned(option: str, pattern: str) -> None:
    assert nobody(option, [pattern], hosts=HOSTS, groups=GROUPS) == ""


def test_every_pattern_that_matches_nobody_is_named_with_what_is_near() -> None:
    said = nobody("--limit", ["gpu-1", "gpu-22", "pair", "x*", "x*"], hosts=HOSTS, groups=GROUPS)
    assert said == (
        "--limit gpu-22 matches no host of the inventory (did you mean gpu-2 or gpu-1?); "
        "--limit pair matches no host of the inventory (did you mean pairs or spare?); "
        "--limit x* matches no host of the inventory"
    )


def test_patterns_are_found_on_a_command_line_however_they_are_written() -> None:
    words = ["prod.py", "deploy.py", "--limit", "gpu-1", "-y", "--exclude=x*", "--limit=spare", "--limits", "--limit"]
    assert given(words, "--limit") == ["gpu-1", "spare", ""]
    assert given(words, "--exclude") == ["x*"]
