"""Command lines, right ones and wrong ones, drawn from a release's catalogue.

Every choice comes from the `Random` that is handed in, so a seed gives the same lines again. Options are taken from the
catalogue; a test of its own sees to it that these are all there are.
"""

import json
from collections.abc import Callable
from random import Random

from sglang_fleet.catalog import Argument, Catalogue

# Nothing here begins with `--config`: SGLang merges that file's words before its parser sees the line.
# `--name=--` is left out as well: see sglang_fleet.catalog.commandline.
NUMBERS = "0 1 -1 8 +8 08 8.0 -0.5 .5 -.5 1e3 -1e-5 1_000 \u0663 0x10 1e999 nan inf -inf -5x 99999999999999999999"
SIZES = "1k 1.001k 1.5k 1.5Ki 4Ki 2M 1.0000000001T 1K k \u0663k"
TEXTS = "true false True None none null auto -x - -- --- a=/b"
JSON = (
    "{}",
    "[]",
    "{",
    "[1,2]",
    '{"a": 1}',
    '{"a": NaN}',
    "[Infinity]",
    "[1e400]",
    "[123456789012345678901234]",
    '["\\ud800"]',
    '["é"]',
    '"text"',
    '{"decode": {"bs": [1, 2]}}',
    '{"decode": {"backend": "tc_piecewise"}}',
    '{"prefill": {"max_seq_len": 1}}',
    '{"decode": {"max_seq_len": 1}}',
    '{"decode": 1}',
    '{"train": {}}',
    '{"lora_name": "a", "lora_path": "/b"}',
    ' {"lora_name": "a", "lora_path": "/b"} ',
    '{"lora_name": "a"}',
)
TRICKY = ("", " ", "a b", "-a b", "--a b", "8 k", " 4Ki ", *f"{NUMBERS} {SIZES} {TEXTS}".split(), *JSON)
UNKNOWN = ("--no-such-thing", "--foo=1", "-f", "--tp_size", "--TP-SIZE", "--trust-remote-codes", "-tp", "--no-tp-size")


def right_word(argument: Argument, random: Random) -> str:
    """A word this argument takes."""
    if argument.choices:
        return str(random.choice(argument.choices))
    if argument.reader == "parse_cuda_graph_config_arg":
        return random.choice(['{"decode": {"bs": [1, 2]}}', "{}", '{"prefill": {"max_bs": 8}}'])
    if argument.kind == "json":
        return json.dumps(random.choice([{"a": [1, 2.5, None, True, "é"]}, [1], [], {}, "text", 3]))
    return {
        "int": str(random.randint(-5, 99999)),
        "float": random.choice([str(random.uniform(-2, 2)), "1", "1e-3", "-0.25"]),
        "size": random.choice([str(random.randint(-5, 9999)), "8k", "4Ki", "1.5M"]),
    }.get(argument.kind) or random.choice(["/models/k26", "a", "x=y", "http://127.0.0.1:1", "", "8", "é"])


def spelling(argument: Argument, random: Random) -> str:
    """One of an argument's own names."""
    name = random.choice([argument.flag, *argument.aliases])
    return f"--no-{name.removeprefix('--')}" if argument.kind == "switch" and random.random() < 0.5 else name


def right(argument: Argument, random: Random) -> list[str]:
    """An option as it should be."""
    name = spelling(argument, random)
    if argument.kind in ("flag", "switch"):
        return [name]
    if argument.nargs in ("*", "+"):
        fewest = 1 if argument.nargs == "+" else 0
        return [name, *(right_word(argument, random) for _ in range(random.randint(fewest, 3)))]
    if argument.nargs == "?" and random.random() < 0.3:
        return [name]
    word = right_word(argument, random)
    return [f"{name}={word}"] if random.random() < 0.3 or word.startswith("-") else [name, word]


def any_word(argument: Argument, random: Random) -> list[str]:
    return [spelling(argument, random), random.choice(TRICKY)]


def attached(argument: Argument, random: Random) -> list[str]:
    return [f"{spelling(argument, random)}={random.choice([word for word in TRICKY if word != '--'])}"]


def no_word(argument: Argument, random: Random) -> list[str]:
    return [spelling(argument, random)]


def shortened(argument: Argument, random: Random) -> list[str]:
    name, *words = right(argument, random)
    name, equals, word = name.partition("=")
    return [name[: random.randint(3, len(name))] + equals + word, *words]


def too_many(argument: Argument, random: Random) -> list[str]:
    return [*right(argument, random), random.choice(TRICKY)]


def unknown(argument: Argument, random: Random) -> list[str]:
    return random.choice([[random.choice(UNKNOWN)], [random.choice(UNKNOWN), right_word(argument, random)]])


def stray(argument: Argument, random: Random) -> list[str]:
    return [random.choice(TRICKY), *right(argument, random)]


def twice(argument: Argument, random: Random) -> list[str]:
    return [*right(argument, random), *right(argument, random)]


def negated(argument: Argument, random: Random) -> list[str]:
    return [f"--no-{random.choice([argument.flag, *argument.aliases]).removeprefix('--')}"]


def misspelled(argument: Argument, random: Random) -> list[str]:
    name, *words = right(argument, random)
    at = random.randrange(len(name))
    return [name[:at] + random.choice(["", "x", "-", "=", " ", name[at] * 2]) + name[at + 1 :], *words]


def asks_for_help(argument: Argument, random: Random) -> list[str]:
    return [random.choice(["-h", "--help", "--hel", "-hx"]), *right(argument, random)]


Change = Callable[[Argument, Random], list[str]]
CHANGES: dict[str, Change] = {
    change.__name__: change
    for change in (
        any_word,
        attached,
        no_word,
        shortened,
        too_many,
        unknown,
        stray,
        twice,
        negated,
        misspelled,
        asks_for_help,
    )
}
RARE = {"asks_for_help": 0.2}


def line(catalogue: Catalogue, random: Random) -> tuple[str, list[str]]:
    """The name of what is peculiar about it, and the words."""
    chunks = [right(_drawn(catalogue, random), random) for _ in range(random.randint(0, 4))]
    if random.random() < 0.95:
        chunks.append(random.choice([["--model-path", "m"], ["--model", "m"], ["--model-path=m"]]))
    name = "right"
    if random.random() < 0.7:
        name = random.choices(list(CHANGES), [RARE.get(name, 1) for name in CHANGES])[0]
        chunks.append(CHANGES[name](_drawn(catalogue, random), random))
    random.shuffle(chunks)
    return name, [word for chunk in chunks for word in chunk]


def _drawn(catalogue: Catalogue, random: Random) -> Argument:
    """Any argument; the few that SGLang reads in a way of their own more often."""
    special = [argument for argument in catalogue.arguments if argument.reader]
    return random.choice(special if special and random.random() < 0.1 else catalogue.arguments)


def is_comparable(words: list[str]) -> bool:
    """Whether the parser alone decides about the line: see TRICKY."""
    return not any(word == "--config" or word.endswith("=--") for word in words)
