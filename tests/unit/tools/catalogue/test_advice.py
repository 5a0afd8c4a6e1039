from __future__ import annotations

import pytest

from tools.catalogue.advice import advice
from tools.catalogue.problems import NotUnderstoodError


@pytest.mark.parametrize(
    ("help_text", "words"),
    [
        ("The number of things.", None),
        ("Replaces the deprecated --old.", None),
        ("Deprecated. Use --new=pil instead.", "use --new=pil"),
        ("[Deprecated] Use --new {a,b} instead. 'x' maps to 'a'.", "use --new {a,b}"),
        ("[Deprecated] Use A=1 and\n B=1 instead.", "use A=1 and B=1"),
        ("(Deprecated: use --new) It did something.", "use --new"),
        ("(Deprecated, use --new) It did something.", "use --new"),
        ("[Deprecated] Alias for --mode recover.", "use --mode=recover"),
        ("Deprecated alias for --new.", "use --new"),
        ("Note: --old is deprecated now. Please use --new instead.", "use --new"),
        ("Removed. Use --new with one of: a, b.", "use --new with one of: a, b"),
        ("Deprecated: It is on. Use --new to be sure.", "it is on. Use --new to be sure"),
    ],
)
def test_what_the_help_says_to_use_instead(help_text: str, words: str | None) -> None:
    assert advice(help_text=help_text, new_flag=None, without_effect=False) == words


def test_what_the_action_prints_goes_first() -> None:
    assert advice(help_text="", new_flag="--new", without_effect=False) == "use --new"


def test_an_argument_without_effect_says_so() -> None:
    assert advice(help_text="Note: --x is deprecated now.", new_flag=None, without_effect=True) == "it has no effect"


@pytest.mark.parametrize(("text", "without_effect"), [("Deprecated.", False), ("What it was.", True)])
def test_a_deprecation_without_a_word_on_it_stops_the_tool(text: str, without_effect: bool) -> None:  # noqa: FBT001 - pytest passes it by name
    with pytest.raises(NotUnderstoodError):
        advice(help_text=text, new_flag=None, without_effect=without_effect)
