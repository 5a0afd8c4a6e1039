"""Our reader and SGLang's own parser agree on every command line: what is refused, and every value of what is not."""

import os
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from sglang_fleet.catalog import Argument, Catalogue, catalogue
from sglang_fleet.catalog.commandline import CommandLine, read
from tests.real import lines
from tests.real.real_parser import Outcome, RealParser

SEED = int(os.environ.get("SGLANG_FLEET_REAL_SEED", "1"))
LINES = 12_000
FEWER = 6_000
SHOWN = 8


@pytest.fixture(scope="module")
def ours(real: RealParser) -> Catalogue:
    return catalogue(real.version)


def disagreement(words: Sequence[str], outcome: Outcome, line: CommandLine, real: RealParser) -> str | None:
    """What is different, if anything."""
    if isinstance(outcome, str) or line.problems:
        agree = isinstance(outcome, str) and bool(line.problems)
        return None if agree else f"{list(words)}\n  SGLang: {outcome}\n  ours:   {list(line.problems)}"
    # Compared as text: 1, 1.0 and true are not the same, NaN and NaN are.
    values = line.namespace()
    theirs = real.plain | outcome
    names = [name for name in theirs.keys() | values.keys() if repr(theirs.get(name)) != repr(values.get(name))]
    return (
        "".join(f"{list(words)}: {n}\n  SGLang: {theirs.get(n)!r}\n  ours:   {values.get(n)!r}" for n in names) or None
    )


def compare(compared: Sequence[Sequence[str]], real: RealParser, ours: Catalogue) -> list[Outcome]:
    """Fails on any disagreement, and shows the first ones."""
    outcomes = real.parse(compared)
    different = [
        text
        for words, outcome in zip(compared, outcomes, strict=True)
        if (text := disagreement(words, outcome, read(words, ours), real))
    ]
    assert not different, f"{len(different)} of {len(compared)}:\n" + "\n".join(different[:SHOWN])
    return outcomes


def reason(outcome: Outcome) -> str:
    """What kind of error ended the parsing."""
    if not isinstance(outcome, str):
        return "accepted"
    known = (
        "unrecognized arguments",
        "ambiguous option",
        "are required",
        "invalid choice",
        "invalid",
        "expected one argument",
        "expected at least one argument",
        "ignored explicit argument",
        "exit 0",
    )
    return next((name for name in known if name in outcome), "raised by a reader of its own")


def test_the_defaults_are_the_same(real: RealParser, ours: Catalogue) -> None:
    values = read(["--model-path", "m"], ours).namespace()
    assert {name: repr(value) for name, value in values.items()} == {n: repr(value) for n, value in real.plain.items()}


def test_the_options_are_the_same(real: RealParser, ours: Catalogue) -> None:
    assert sorted(name for argument in ours.arguments for name in spellings(argument)) == sorted(
        set(real.options) - {"-h", "--help"}
    )


def test_random_lines(real: RealParser, ours: Catalogue, counts: list[str]) -> None:
    random = Random(SEED)
    drawn = [line for line in (lines.line(ours, random) for _ in range(LINES)) if lines.is_comparable(line[1])]
    outcomes = compare([words for _, words in drawn], real, ours)
    kinds = Counter(
        (name, "refused" if isinstance(outcome, str) else "accepted")
        for (name, _), outcome in zip(drawn, outcomes, strict=True)
    )
    reasons = Counter(map(reason, outcomes))
    counts += [
        f"SGLang {real.version}: {len(drawn)} random lines (seed {SEED}): "
        + ", ".join(f"{count} {name}" for name, count in reasons.most_common()),
        "  "
        + "; ".join(
            f"{name} {kinds[name, 'accepted']} accepted, {kinds[name, 'refused']} refused"
            for name in ["right", *lines.CHANGES]
        ),
    ]
    assert min(reasons.values()) >= 10
    assert len(reasons) == 11
    assert all(kinds[name, "refused"] >= 20 for name in lines.CHANGES if name != "twice")


def test_every_argument_with_every_word(real: RealParser, ours: Catalogue, counts: list[str]) -> None:
    """Alone, with each tricky word behind it and attached to it, and with each of its choices."""
    compared = [
        ["--model-path", "m", *words]
        for argument in ours.arguments
        for words in [
            [argument.flag],
            *([argument.flag, word] for word in lines.TRICKY),
            *([f"{argument.flag}={word}"] for word in lines.TRICKY),
            *([argument.flag, str(choice)] for choice in argument.choices or ()),
        ]
        if lines.is_comparable(words)
    ]
    outcomes = compare(compared, real, ours)
    refused = sum(isinstance(outcome, str) for outcome in outcomes)
    counts.append(
        f"SGLang {real.version}: every argument with every word: {len(outcomes) - refused} accepted, {refused} refused"
    )


def test_every_abbreviation(real: RealParser, ours: Catalogue, counts: list[str]) -> None:
    names = {spelling for argument in ours.arguments for spelling in spellings(argument)}
    short = sorted({name[:length] for name in names for length in range(3, len(name) + 1)} - {"--config"})
    compared = [["--model-path", "m", word, *more] for word in short for more in ([], ["1"])]
    outcomes = compare(compared, real, ours)
    ambiguous = sum(reason(outcome) == "ambiguous option" for outcome in outcomes)
    counts.append(f"SGLang {real.version}: {len(short)} abbreviations, {ambiguous // 2} of them ambiguous")


def spellings(argument: Argument) -> list[str]:
    names = [argument.flag, *argument.aliases]
    return names + [f"--no-{name.removeprefix('--')}" for name in names] if argument.kind == "switch" else names


def test_what_is_read_renders_to_a_line_with_the_same_meaning(real: RealParser, ours: Catalogue) -> None:
    """A YAML value taken from a command line becomes words that SGLang reads as it read those."""
    read_lines = accepted(ours)
    assert len(read_lines) > FEWER // 4
    again = [[word for given in line.given for word in given.argument.render(given.value)] for line in read_lines]
    different = [
        text
        for words, outcome, line in zip(again, real.parse(again), read_lines, strict=True)
        if (text := disagreement(words, outcome, line, real))
    ]
    assert not different, "\n".join(different[:SHOWN])


def test_what_is_read_passes_the_check_of_settings(ours: Catalogue) -> None:
    given = [given for line in accepted(ours) for given in line.given]
    sentences = {each.argument.check(each.argument.flag, each.value) for each in given}
    # In a list it refuses every word that begins with a minus; SGLang takes one that has a blank in it.
    assert {sentence for sentence in sentences if sentence and "begins with a minus" not in sentence} == set()


def accepted(ours: Catalogue) -> list[CommandLine]:
    """Random lines that are right and read no configuration file."""
    random = Random(SEED + 1)
    drawn = [read(lines.line(ours, random)[1], ours) for _ in range(FEWER)]
    return [line for line in drawn if not line.problems and all(one.argument.name != "config" for one in line.given)]
