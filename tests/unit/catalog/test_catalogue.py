"""Looking arguments up, and the sentences an operator reads."""

from __future__ import annotations

import re

import pytest

from sglang_fleet.catalog import (
    Argument,
    Catalogue,
    UnknownVersion,
    catalogue,
    history,
    nearest,
    order,
    versions,
)
from sglang_fleet.catalog.others import OTHERS
from sglang_fleet.catalog.replaced import REPLACED


@pytest.fixture(scope="module")
def pinned() -> Catalogue:
    return catalogue("0.5.23")


def found(pinned: Catalogue, name: str) -> Argument:
    argument = pinned.find(name)
    assert argument is not None
    return argument


def test_every_option_of_the_release_is_there(pinned: Catalogue) -> None:
    assert len(pinned.arguments) == 531
    assert len({argument.flag for argument in pinned.arguments}) == 531


@pytest.mark.parametrize("name", ["tp_size", "tp-size", "--tp-size"])
def test_an_argument_is_found_by_any_way_of_writing_it(pinned: Catalogue, name: str) -> None:
    assert found(pinned, name).flag == "--tp-size"
    assert found(pinned, name).render(8) == ["--tp-size", "8"]


def test_an_alias_renders_as_the_operator_wrote_it(pinned: Catalogue) -> None:
    assert found(pinned, "tensor_parallel_size").render(8) == ["--tensor-parallel-size", "8"]
    assert found(pinned, "tensor_parallel_size").name == "tp_size"
    assert found(pinned, "model").render("m") == ["--model", "m"]
    assert found(pinned, "model_path").render("m") == ["--model-path", "m"]


def test_a_destination_that_is_no_flag_is_not_found(pinned: Catalogue) -> None:
    """0.5.23 keeps `--fp8-gemm-backend` under `fp8_gemm_runner_backend`: that is no name to write."""
    assert found(pinned, "fp8_gemm_backend").destination == "fp8_gemm_runner_backend"
    assert pinned.find("fp8_gemm_runner_backend") is None


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "pp_async_batch_dept",
            1,
            "`pp_async_batch_dept`: no such argument in SGLang 0.5.23; did you mean `pp_async_batch_depth`?",
        ),
        ("zzzzzz", 1, "`zzzzzz`: no such argument in SGLang 0.5.23"),
        (
            "no_lora_strict_loading",
            True,
            "`no_lora_strict_loading`: write `lora_strict_loading: false` instead",
        ),
        ("tp_size", "eight", "`tp_size` expects a whole number, got 'eight'"),
        ("tp_size", True, "`tp_size` expects a whole number, got true"),
        ("tp_size", [1, 2], "`tp_size` takes one value, got a list"),
        ("mem_fraction_static", "much", "`mem_fraction_static` expects a number, got 'much'"),
        ("trust_remote_code", "yes", "`trust_remote_code` expects true or false, got 'yes'"),
        ("weight_version", 1.1, "`weight_version` expects text, got 1.1; put it in quotes"),
        ("grammar_backend", {"a": 1}, "`grammar_backend` must be one of xgrammar, "),
        (
            "grammar_backend",
            "nothing",
            "`grammar_backend` must be one of xgrammar, outlines, llguidance, none; got 'nothing'",
        ),
        ("cuda_graph_config", "{", "`cuda_graph_config` expects a mapping, a list or JSON text, got '{'"),
        ("cuda_graph_config", {"both": {}}, "`cuda_graph_config` knows decode and prefill, not 'both'"),
        (
            "cuda_graph_config",
            {"decode": {"backend": "tc_piecewise"}},
            "`cuda_graph_config` has the backend 'tc_piecewise' for 'decode', which SGLang 0.5.23 no longer has",
        ),
        ("lora_paths", ['{"lora_name": "a"}'], "`lora_paths` needs lora_path in "),
        ("cuda_graph_bs_decode", [], "`cuda_graph_bs_decode` expects at least one value, got an empty list"),
        ("cuda_graph_bs_decode", [1, "x"], "`cuda_graph_bs_decode` expects a whole number, got 'x'"),
    ],
)
def test_a_wrong_setting_is_named_in_one_sentence(pinned: Catalogue, name: str, value: object, sentence: str) -> None:
    problem = pinned.check(name, value)
    assert problem is not None
    assert problem.startswith(sentence)


@pytest.mark.parametrize(
    ("name", "value", "end"),
    [
        ("attention_backend", "flashinfre", "; got 'flashinfre'; did you mean `flashinfer`?"),
        ("attention_backend", "FlashInfer", "; got 'FlashInfer'; did you mean `flashinfer`?"),
        ("attention_backend", "zzzz", "; got 'zzzz'"),
    ],
)
def test_the_nearest_choice_is_named(pinned: Catalogue, name: str, value: object, end: str) -> None:
    problem = pinned.check(name, value)
    assert problem is not None
    assert problem.endswith(end)


def test_what_did_the_same_before_an_argument_was_there_is_named() -> None:
    sentence = catalogue("0.5.9").check("attn_dp_size", 2)
    assert sentence == (
        "`attn_dp_size`: not in SGLang 0.5.9 yet; there since 0.5.22; use `dp_size` with `enable_dp_attention`"
    )


def test_the_golden_spec_is_fine(pinned: Catalogue) -> None:
    arguments = {
        "model_path": "/root/models/Kimi-K2.6",
        "port": 30001,
        "host": "0.0.0.0",  # noqa: S104 - the story's own spec
        "tp_size": 1,
        "pp_size": 8,
        "pp_async_batch_depth": 8,
        "mem_fraction_static": 0.88,
        "context_length": 32768,
        "max_running_requests": 64,
        "attention_backend": "triton",
        "trust_remote_code": True,
        "grammar_backend": "none",
        "api_key": None,
    }
    assert [pinned.check(*item) for item in arguments.items()] == [None] * len(arguments)
    words = [word for name, value in arguments.items() for word in found(pinned, name).render(value)]
    assert " ".join(words) == (
        "--model-path /root/models/Kimi-K2.6 --port 30001 --host 0.0.0.0 --tp-size 1 --pp-size 8"
        " --pp-async-batch-depth 8 --mem-fraction-static 0.88 --context-length 32768"
        " --max-running-requests 64 --attention-backend triton --trust-remote-code --grammar-backend none"
    )


def test_what_the_source_calls_deprecated_says_what_to_use(pinned: Catalogue) -> None:
    advice = found(pinned, "disable_cuda_graph").deprecated
    assert advice == "use --cuda-graph-backend-{decode,prefill}=disabled"
    assert found(pinned, "disable_cuda_graph").advice == "use `cuda_graph_backend_{decode,prefill}: disabled`"
    assert found(pinned, "tp_size").advice == ""
    assert found(pinned, "tp_size").deprecated is None


def test_the_model_is_the_only_argument_that_must_be_given(pinned: Catalogue) -> None:
    assert [argument.flag for argument in pinned.arguments if argument.required] == ["--model-path"]


@pytest.mark.parametrize("version", ["0.5.99", "../data/0.5.23", ""])
def test_an_unknown_version_names_those_there_are(version: str) -> None:
    with pytest.raises(UnknownVersion, match=r"no flag catalogue for SGLang .*; there is one for .*0\.5\.23"):
        catalogue(version)


def test_versions_are_in_the_order_of_release() -> None:
    assert versions() == tuple(sorted(versions(), key=order))
    releases = ["0.5.6.dev1", "0.5.6rc1", "0.5.6", "0.5.6.post2", "0.5.9", "0.5.10", "0.6", "0.6.1"]
    assert sorted(sorted(releases), key=order) == releases
    assert order("0.6") == order("0.6.0")


@pytest.mark.parametrize(
    ("version", "other"),
    [
        ("0.5.9", "0.5.9"),
        ("0.5.24", "0.5.23"),
        ("0.6.0", "0.5.23"),
        ("0.5.4", "0.5.5"),
        ("0.5.7.post1", "0.5.7"),
        ("0.5.23rc1", "0.5.22"),
        ("0.5.22+cu130", "0.5.22"),
    ],
)
def test_the_nearest_release_is_the_newest_that_is_not_newer(version: str, other: str) -> None:
    assert nearest(version).version == other


def test_every_release_since_0_5_5_is_there() -> None:
    assert len(versions()) >= 29
    assert versions()[0] == "0.5.5"


@pytest.mark.parametrize("name", ["pp_async_batch_depth", "pp-async-batch-depth", "--pp-async-batch-depth"])
def test_the_releases_that_accept_an_argument(name: str) -> None:
    since = versions().index("0.5.7")
    assert history(name) == versions()[since:]


def test_aliases_have_a_history_of_their_own() -> None:
    assert history("tensor_parallel_size") == history("tp_size") == versions()
    assert history("enable_hicache")[0] == "0.5.23"
    assert history("nobody") == ()


@pytest.mark.parametrize("name", ["tp_size", "pp_size", "dp_size", "ep_size"])
@pytest.mark.parametrize("version", ["0.5.5", "0.5.13", "0.5.14", "0.5.23"])
def test_an_argument_keeps_its_own_name_over_the_releases(name: str, version: str) -> None:
    argument = catalogue(version).find(name)
    assert argument is not None
    assert argument.name == name


@pytest.mark.parametrize(
    ("version", "name", "sentence"),
    [
        ("0.5.6.post2", "pp_async_batch_depth", "not in SGLang 0.5.6.post2 yet; there since 0.5.7"),
        (
            "0.5.23",
            "cuda_graph_max_bs",
            "gone from SGLang 0.5.23; 0.5.19 was the last with it; use `cuda_graph_max_bs_decode`",
        ),
        (
            "0.5.23",
            "disable_piecewise_cuda_graph",
            "gone from SGLang 0.5.23; 0.5.19 was the last with it; use `cuda_graph_backend_prefill: disabled`",
        ),
        # 0.5.5 called neither deprecated.
        ("0.5.6", "kt_amx_method", "gone from SGLang 0.5.6; 0.5.5 was the last with it; use `kt_method`"),
        # What is said to use instead is gone as well, and has a successor, or none.
        (
            "0.5.23",
            "piecewise_cuda_graph_compiler",
            "gone from SGLang 0.5.23; 0.5.19 was the last with it; remove it: its backend, tc_piecewise, is gone too",
        ),
        ("0.5.23", "enforce_piecewise_cuda_graph", "gone from SGLang 0.5.23; 0.5.19 was the last with it"),
        (
            "0.5.23",
            "prefill_round_robin_balance",
            "gone from SGLang 0.5.23; 0.5.19 was the last with it; remove it: it has no effect",
        ),
        (
            "0.5.10",
            "hierarchical_sparse_attention_extra_config",
            "not in SGLang 0.5.10; 0.5.9 was the last with it before 0.5.12",
        ),
    ],
)
def test_an_argument_of_other_releases_says_which(version: str, name: str, sentence: str) -> None:
    assert catalogue(version).check(name, 1) == f"`{name}`: {sentence}"


def test_an_argument_that_is_there_to_be_refused() -> None:
    known = catalogue("0.5.19")
    assert known.check("enable_expert_distribution_metrics", value=True) == (
        "`enable_expert_distribution_metrics` is refused by SGLang;"
        " use `expert_balancedness_report_mode` with one of: off, server_log, prometheus, both"
    )
    assert known.check("enable_expert_distribution_metrics", value=False) is None


@pytest.mark.parametrize("name", list(REPLACED))
def test_what_replaces_an_argument_is_there_when_it_is_gone(name: str) -> None:
    last = versions().index(history(name)[-1])
    following = catalogue(versions()[last + 1])
    assert following.find(name) is None
    for other in re.findall("`([a-z_0-9]+)`", REPLACED[name]):
        assert following.find(other) is not None
    assert REPLACED[name] in (following.check(name, 1) or "")


@pytest.mark.parametrize("name", list(OTHERS))
def test_what_other_servers_call_it_is_no_argument_and_the_advice_can_be_followed(pinned: Catalogue, name: str) -> None:
    whose, advice = OTHERS[name]
    assert not history(name)
    sentence = pinned.check(name, 1)
    assert sentence == f"`{name}`: no such argument in SGLang 0.5.23: it is {whose}; {advice}"
    for other, value in re.findall("`([a-z_0-9]+)(?:: ([^`]+))?`", advice):
        argument = found(pinned, other)
        assert not value or argument.check(other, value) is None
    assert advice.startswith(("use ", "write ", "remove it: "))


def test_an_advice_that_the_release_cannot_follow_is_left_out() -> None:
    sentence = catalogue("0.5.5").check("limit_mm_per_prompt", "{}")
    assert sentence == "`limit_mm_per_prompt`: no such argument in SGLang 0.5.5: it is vLLM's"


@pytest.mark.parametrize("name", ["max-model-len", "--max-model-len"])
def test_another_servers_argument_is_known_by_any_way_of_writing_it(pinned: Catalogue, name: str) -> None:
    assert "use `context_length`" in (pinned.check(name, 1) or "")
