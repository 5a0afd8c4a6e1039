"""Reading a command line; `tests/real` compares the reader with SGLang's own parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.catalog import Argument, catalogue
from sglang_fleet.catalog.commandline import CommandLine, read

CATALOGUE = catalogue("0.5.23")
MODEL = ["--model-path", "m"]


def line(words: str, version: str = "0.5.23") -> CommandLine:
    return read([*MODEL, *words.split()], catalogue(version))


def settings(words: str, version: str = "0.5.23") -> list[tuple[str, object]]:
    """Names and values of what follows the model, on a line without problems."""
    read_line = line(words, version)
    assert read_line.problems == ()
    return [(each.argument.name, each.value) for each in read_line.given[1:]]


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("--tp-size 8", "tp_size", 8),
        ("--tp-size=8", "tp_size", 8),
        ("--tensor-parallel-size 8", "tp_size", 8),
        ("--tp 8", "tp_size", 8),
        ("--mem-frac 0.88", "mem_fraction_static", 0.88),
        ("--trust-remote-code", "trust_remote_code", True),
        ("--lora-strict-loading", "lora_strict_loading", True),
        ("--no-lora-strict-loading", "lora_strict_loading", False),
        ("--no-lora-strict", "lora_strict_loading", False),
        ("--random-seed -1", "random_seed", -1),
        ("--schedule-conservativeness=-1e-5", "schedule_conservativeness", -1e-05),
        ("--context-length 8k", "context_length", "8k"),
        ("--context-length 8192", "context_length", 8192),
        ("--cuda-graph-bs-decode 1 2 4", "cuda_graph_bs_decode", [1, 2, 4]),
        ("--cuda-graph-bs-decode=1", "cuda_graph_bs_decode", [1]),
        ("--lora-paths", "lora_paths", []),
        (
            '--lora-paths a=/b {"lora_name":"c","lora_path":"/d"}',
            "lora_paths",
            ["a=/b", {"lora_name": "c", "lora_path": "/d"}],
        ),
        ('--cuda-graph-config {"decode":{"bs":[1]}}', "cuda_graph_config", {"decode": {"bs": [1]}}),
        ('--json-model-override-args {"a":1}', "json_model_override_args", '{"a":1}'),
        ('--preferred-sampling-params {"a":NaN}', "preferred_sampling_params", '{"a":NaN}'),
        ("--preferred-sampling-params 3", "preferred_sampling_params", "3"),
        ("--model-checksum", "model_checksum", True),
        ("--model-checksum sums.json", "model_checksum", "sums.json"),
        ("--chat-template=-x", "chat_template", "-x"),
        ("--chat-template -", "chat_template", "-"),
        ("--monokernel-backend amd", "monokernel_backend", "amd"),
        ("--config secrets.yaml", "config", "secrets.yaml"),
    ],
)
def test_an_option_is_the_value_of_a_setting(words: str, name: str, value: object) -> None:
    assert settings(words) == [(name, value)]


def test_a_word_with_a_blank_is_a_value_whatever_it_begins_with() -> None:
    given_line = read([*MODEL, "--chat-template", "--a b"], CATALOGUE)
    assert given_line.problems == ()
    assert given_line.given[1].value == "--a b"


def test_blanks_around_a_lora_path_do_not_count() -> None:
    loras = read([*MODEL, "--lora-paths", " a ", ' {"lora_name": "b", "lora_path": "/c"} '], CATALOGUE)
    assert loras.namespace()["lora_paths"] == ["a", {"lora_name": "b", "lora_path": "/c"}]


def test_repeated_options_are_all_given_and_the_last_counts() -> None:
    repeated = line("--tp-size 2 --pp-size 3 --tensor-parallel-size 4")
    assert [each.value for each in repeated.given[1:]] == [2, 3, 4]
    assert repeated.namespace()["tp_size"] == 4


@pytest.mark.parametrize(
    ("words", "destination", "parsed"),
    [
        ("--context-length 1.0001k", "context_length", 1000),
        ("--context-length 1.001k", "context_length", 1001),
        ("--context-length 4Ki", "context_length", 4096),
        ("--context-length 25.6k", "context_length", 25600),
        ("--quantization-param-path None", "quantization_param_path", None),
        ("--monokernel-backend amd", "enable_amd_monokernel", True),
        ("--model-checksum", "model_checksum", ""),
        ("", "port", 30000),
        ("", "enable_amd_monokernel", False),
    ],
)
def test_the_namespace_holds_what_sglang_holds(words: str, destination: str, parsed: object) -> None:
    assert repr(line(words).namespace()[destination]) == repr(parsed)


def test_a_namespace_is_the_callers_own() -> None:
    allowed = line("").namespace()["allowed_media_domains"]
    assert isinstance(allowed, list)
    allowed.append("changed")
    assert line("").namespace()["allowed_media_domains"] == []


def test_an_argument_that_does_nothing_any_more_leaves_the_default() -> None:
    old = line("--prefill-round-robin-balance", "0.5.9")
    assert old.problems == ()
    assert old.namespace() == line("", "0.5.9").namespace()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--tp-size x", "`--tp-size` expects a whole number, got 'x'"),
        ("--tensor-parallel x", "`--tensor-parallel-size` expects a whole number, got 'x'"),
        ("--tp-size", "`--tp-size` expects a value, got none"),
        ("--tp-size --pp-size 2", "`--tp-size` expects a value, got none"),
        ("--cuda-graph-bs-decode", "`--cuda-graph-bs-decode` expects at least one value, got none"),
        ("--trust-remote-code=yes", "`--trust-remote-code` takes no value"),
        ("--load-balance-method guess", "`--load-balance-method` must be one of"),
        ("--tp-size 1 2", "'2' after `--tp-size` belongs to no argument"),
        ("--trust-remote-code x y", "'x' 'y' after `--trust-remote-code` belongs to no argument"),
        ("-- --tp-size 2", "'--' '--tp-size' '2' after `--model-path` belongs to no argument"),
        (
            "--cuda-graph-max-bs 8",
            "`--cuda-graph-max-bs` may mean any of --cuda-graph-max-bs-decode, --cuda-graph-max-bs-p",
        ),
        ("-h", "`-h` makes SGLang print its help and end"),
        ("--no-tp-size", "`--no-tp-size`: no such argument in SGLang 0.5.23"),
        ("--tp_size 8", "`--tp_size`: no such argument in SGLang 0.5.23"),
        ("--context-length 1.5Ki", "`--context-length` expects a whole number, or one with a suffix"),
        ("--sidecar-args [NaN]", "`--sidecar-args`"),
        ("--sidecar-args [1e999]", "`--sidecar-args`"),
        ('--sidecar-args ["\\ud800"]', "`--sidecar-args`"),
        ("--cuda-graph-config 3", "`--cuda-graph-config` expects a mapping of decode and prefill"),
        ('--cuda-graph-config {"train":{}}', "`--cuda-graph-config` knows decode and prefill, not 'train'"),
        ('--cuda-graph-config {"decode":1}', "`--cuda-graph-config` expects a mapping for 'decode'"),
        (
            '--cuda-graph-config {"decode":{"x":1}}',
            "`--cuda-graph-config` knows backend, max_bs, bs for 'decode', not 'x'",
        ),
        ('--lora-paths {"lora_name":"a"}', "`--lora-paths` needs lora_path in"),
    ],
)
def test_what_sglang_would_refuse_is_said(words: str, problem: str) -> None:
    problems = line(words).problems
    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_every_problem_is_said_in_the_order_of_the_words() -> None:
    problems = read(
        ["x", "--tp-size", "a", "--foo", "1", "2", "--help", "--pp-size", "--dp-size", "2", "3"], CATALOGUE
    ).problems
    assert [problem.split("`")[1] for problem in problems[1:]] == [
        "--tp-size",
        "--foo",
        "--help",
        "--pp-size",
        "--dp-size",
        "--model-path",
    ]
    assert problems[0] == "'x' at the beginning belongs to no argument"


def test_what_is_wrong_does_not_hide_what_is_right() -> None:
    mixed = line("--foo 1 --tp-size 2 --cuda-graph-max-bs 8 --pp-size x --dp-size 3")
    assert [(each.argument.name, each.value) for each in mixed.given[1:]] == [("tp_size", 2), ("dp_size", 3)]


def test_unknown_options_come_with_the_words_after_them() -> None:
    mixed = line("--foo 1 2 --tp-size 4 5 --bar=6 -7 --quux")
    assert mixed.unknown == (("--foo", "1", "2"), ("--bar=6", "-7"), ("--quux",))


def test_a_key_of_a_cuda_graph_setting_is_taken_by_the_releases_that_have_it() -> None:
    words = '--cuda-graph-config {"prefill":{"max_seq_len":1}}'
    assert line(words, "0.5.20").problems
    assert not line(words, "0.5.21").problems


def test_a_removed_graph_backend_is_refused_from_its_removal_on() -> None:
    words = '--cuda-graph-config {"decode":{"backend":"tc_piecewise"}}'
    assert not line(words, "0.5.21").problems
    assert line(words, "0.5.22").problems


@pytest.mark.parametrize(
    "words",
    ["--api-key s3cret s3cret", "--api-key a --admin-api-key=b s3cret", "--api-keys s3cret", "--api-keys=s3cret"],
)
def test_no_problem_shows_what_may_be_a_secret(words: str) -> None:
    problems = line(words).problems
    assert problems
    assert "s3cret" not in " ".join(problems)


spelled = st.sampled_from(
    [argument.spelled(flag) for argument in CATALOGUE.arguments for flag in (argument.flag, *argument.aliases)]
)
scalars = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.sampled_from(["8k", "-x", "", "a b", "--a b"]),
)
values = st.one_of(scalars, st.lists(scalars, max_size=3), st.dictionaries(st.text(), scalars, max_size=2))


@given(spelled, values)
def test_what_a_setting_renders_to_is_read_back(argument: Argument, value: object) -> None:
    if argument.check(argument.flag, value) is not None:
        return
    words = argument.render(value)
    again = read([*MODEL, *words], CATALOGUE)
    assert argument.reader is not None or again.problems == ()
    for each in again.given[1:]:
        once_more = read([*MODEL, *each.argument.render(each.value)], CATALOGUE)
        assert repr(once_more.namespace()) == repr(again.namespace())


@given(
    st.lists(
        st.one_of(
            st.text(), st.sampled_from(["--", "--tp-size", "--tp", "--lora-paths", "--m", "-h", "8", "--tp-size=--"])
        )
    )
)
def test_any_words_can_be_read_and_none_is_lost(words: list[str]) -> None:
    result = read(words, CATALOGUE)
    assert result.problems or len(result.given) > 0
    assert all(group[0].startswith("-") for group in result.unknown)
