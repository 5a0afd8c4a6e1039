import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sglang_fleet.catalog import Catalogue
from sglang_fleet.cli.common import problem_json
from sglang_fleet.problems import Problem, render
from sglang_fleet.spec import Deployment, Loaded, load

Write = Callable[..., Loaded]
Wrong = Callable[..., Problem]
QUOTES = """put the value in quotes, so that it stays as it is written (with --data, in two: '"..."')"""
FOLDER = "the path starts at the project folder, which holds group_vars/"
NAME = "use lower-case letters, digits and '-', at most 48 of them"
HOSTS = tuple(f"h{number}" for number in range(1, 25))


def test_the_example_is_the_storys_command_line(write: Write) -> None:
    loaded = write()
    assert not loaded.problems
    service = loaded.deployments["h1"].services["k26"]
    assert service.args.ordered() == [
        ("model_path", "/root/models/Kimi-K2.6"),
        ("port", 30001),
        ("host", "0.0.0.0"),  # noqa: S104  # what the story says
        ("tp_size", 1),
        ("pp_size", 8),
        ("pp_async_batch_depth", 8),
        ("mem_fraction_static", 0.88),
        ("context_length", 32768),
        ("max_running_requests", 64),
        ("attention_backend", "triton"),
        ("trust_remote_code", True),
        ("grammar_backend", "none"),
    ]
    assert service.nccl.environment() == {
        "NCCL_P2P_LEVEL": "5",
        "NCCL_IB_DISABLE": "1",
        "NCCL_ALGO": "Ring",
    }
    assert (service.user, service.unit_name, service.health.startup_deadline) == (
        "root",
        "sglang-k26.service",
        1800.0,
    )


def test_hosts_of_equal_settings_share_one_spec(write: Write) -> None:
    loaded = write(hosts=HOSTS, host_vars__h2="{}", host_vars__h3="services: {k26: {gpus: null}}")
    assert list(loaded.deployments) == list(HOSTS)
    assert len({id(deployment) for deployment in loaded.deployments.values()}) == 1


def test_a_host_may_differ(write: Write) -> None:
    loaded = write(hosts=("h1", "h2"), host_vars__h2="services: {k26: {args: {port: 30002}}}")
    ports = [deployment.services["k26"].args.port for deployment in loaded.deployments.values()]
    assert ports == [30001, 30002]


def test_the_spec_survives_json(write: Write) -> None:
    deployment = write().deployments["h1"]
    again = Deployment.model_validate(deployment.model_dump(mode="json"))
    assert again == deployment
    assert again.services["k26"].args.ordered() == deployment.services["k26"].args.ordered()


def test_an_error_says_file_line_key_value_and_hosts(write: Write, tmp_path: Path) -> None:
    text = "services:\n  k26:\n    args:\n      tp_size: eight\n"
    loaded = write(hosts=("h1", "h2", "h3"), group_vars__prod=text)
    assert render(loaded.problems, relative_to=tmp_path) == (
        "group_vars/prod.yml:4  services.k26.args.tp_size\n    expects a whole number, got 'eight' (h1, h2, h3)"
    )


def test_all_errors_of_all_hosts_come_at_once(write: Write) -> None:
    loaded = write(
        hosts=("h1", "h2", "h3"),
        host_vars__h1='cuda: {version: "13"}\nservices: {k26: {args: {port: 0, attention_backend: trition}}}',
        host_vars__h2="rolout: {}\nservices: {other: {args: {model_path: /m, port: 30001}, gpus: [0]}}",
        host_vars__h3="services: [",
        overrides={"cuda.sorce": "apt"},
    )
    assert not loaded.deployments
    assert {(hosts, problem.key) for problem in loaded.problems for hosts in [problem.hosts]} == {
        (("h1",), "cuda.version"),
        (("h1",), "services.k26.args.port"),
        (("h1",), "services.k26.args.attention_backend"),
        (("h2",), "rolout"),
        (("h2",), "services.other.args.port"),
        (("h2",), "services.k26.gpus"),
        (("h1", "h2"), "cuda.sorce"),
        (("h3",), ""),
    }


def test_a_host_with_a_problem_does_not_keep_the_others_back(write: Write) -> None:
    loaded = write(hosts=("h1", "h2"), host_vars__h2="cuda: {minimum_driver: new}")
    assert list(loaded.deployments) == ["h1"]


def test_a_missing_setting_is_placed_at_its_parent(write: Write) -> None:
    loaded = write(group_vars__prod="\nservices:\n  other:\n    user: root\n    gpus: [0]\n")
    missing = next(problem for problem in loaded.problems if problem.key == "services.other.args")
    assert (missing.line, missing.message, missing.fix) == (3, "is needed, and is not there", "add args here")


def test_no_file_of_settings_is_said_with_its_name(tmp_path: Path) -> None:
    (problem,) = load(folder=tmp_path, hosts={"h1": [], "h2": []}, overrides={}).problems
    assert (problem.file, problem.message) == (tmp_path / "group_vars/all.yml", "is not there")
    assert problem.hosts == ("h1", "h2")
    assert "cuda, sglang and services" in problem.fix


@pytest.mark.parametrize("text", ["", "# nothing\n", "null\n"])
def test_a_file_without_settings_is_said_with_its_name(write: Write, tmp_path: Path, text: str) -> None:
    (problem,) = write(group_vars__all=text).problems
    assert (problem.file, problem.key) == (tmp_path / "group_vars/all.yml", "")
    assert problem.message == "holds no settings"


def test_what_is_needed_is_missed_in_the_weakest_file(write: Write, tmp_path: Path) -> None:
    problems = write(group_vars__all="rollout: {failure_budget: 0}", host_vars__h1="cuda: {}").problems
    missing = {problem.key: problem.file for problem in problems if problem.message.startswith("is needed")}
    assert missing["sglang"] == missing["services"] == tmp_path / "group_vars/all.yml"


def test_no_hosts_have_no_problems(tmp_path: Path) -> None:
    assert load(folder=tmp_path, hosts={}, overrides={}) == Loaded()


def test_a_host_may_run_nothing(write: Write) -> None:
    assert write(host_vars__h1="services: {k26: null}").deployments["h1"].services == {}


@pytest.mark.parametrize(
    ("overrides", "message", "fix"),
    [
        ({"cuda__version": 13.0}, "expects text, got 13.0", QUOTES),
        ({"cuda__source": "yum"}, "must be one of apt, wheels or preinstalled, got 'yum'", ""),
        ({"cuda": "13.0"}, "expects a mapping of settings, got '13.0'", ""),
        ({"cuda__minimum_driver": "580"}, "expects a whole number, got '580'", "remove the quotes"),
        ({"services": [1]}, "expects a mapping, got a list", ""),
        ({"services__k26": "on"}, "expects a mapping of settings, got text", ""),
        ({"services__K26__args__model_path": "/m"}, "is no name of a service", NAME),
        ({"services__k26__helth": {}}, "no such setting", "did you mean health?"),
        ({"services__k26__health__soaking": 1}, "no such setting", "did you mean soak?"),
        ({"services__k26__nccl__p2p_lvl": 5}, "no such setting", "did you mean p2p_level?"),
        ({"services__k26__secrets__api_key__environ": "X"}, "no such setting", "did you mean env?"),
        ({"services__k26__args__trust_remote_code": "yes"}, "expects true or false", "write true or"),
        ({"services__k26__args__mem_fraction_static": 88}, "must be less than 1, got 88", ""),
        ({"services__k26__args__port": 70000}, "must be at most 65535, got 70000", ""),
        ({"services__k26__args__pp_async_batch_depth": -1}, "must be at least 0, got -1", ""),
        ({"services__k26__args__model_path": 3}, "expects text, got 3", QUOTES),
        ({"services__k26__gpus": 8}, "expects a list, got 8", ""),
        ({"sglang__requirements": "locks/none.txt"}, "names a file that is not there", FOLDER),
        ({"sglang__requirements": "locks"}, "names a file that cannot be read", "name a"),
        (
            {"sglang__version": "0.5.9", "services__k26__args__attn_dp_size": 2},
            "not in SGLang 0.5.9 yet; there since 0.5.22",
            "use dp_size with enable_dp_attention",
        ),
        ({"sglang__version": "0.5.6"}, "not in SGLang 0.5.6 yet; there since 0.5.7", ""),
        ({"rollout__on_failure": "none"}, "must be one of host, wave or all, got 'none'", ""),
    ],
)  # fmt: skip
def test_errors_are_in_an_operators_words(wrong: Wrong, overrides: dict[str, Any], message: str, fix: str) -> None:
    problem = wrong(**overrides)
    assert problem.message.startswith(message)
    assert problem.fix.startswith(fix)
    assert bool(problem.fix) == bool(fix)


def test_a_run_has_one_rollout(write: Write) -> None:
    loaded = write(hosts=("h1", "h2"), host_vars__h2="rollout:\n  failure_budget: 1\n")
    (problem,) = loaded.problems
    assert (problem.key, problem.hosts) == ("rollout.failure_budget", ("h2",))


def test_numbers_in_the_environment_stay_as_they_are_written(write: Write) -> None:
    text = "services: {k26: {environment: {A: 007, B: 1.10, C: 0x1F, D: '8'}}}"
    environment = write(host_vars__h1=text).deployments["h1"].services["k26"].environment
    assert environment == {"A": "007", "B": "1.10", "C": "0x1F", "D": "8"}


def test_a_secret_written_out_is_never_repeated(write: Write) -> None:
    secret = "sk-live-5f3c"  # noqa: S105  # no real one
    for text in (
        f"secrets: {{api_key: {secret}}}",
        f"secrets: {{api_key: {{env: {secret}}}}}",
        f"secrets: {{api_key: [{secret}]}}",
        f"secrets: {{api_key: {{file: [{secret}]}}}}",
        f"args: {{api_key: {secret}}}",
        f"args: {{api_key: [{secret}]}}",
        f"args: {{ssl_keyfile_password: {secret}}}",
        f"extra_args: [--api-key={secret}]",
        f"environment: {{HF_TOKEN: [{secret}]}}",
    ):
        problems = write(host_vars__h1=f"services: {{k26: {{{text}}}}}").problems
        assert problems, text
        assert secret not in render(problems), text


def test_a_password_in_an_address_is_never_repeated(write: Write) -> None:
    (problem,) = write(overrides={"sglang.index_url": "https://me:hunter2@index.example/simple"}).problems
    assert "hunter2" not in render([problem])


def test_a_later_finding_is_placed_by_its_key(write: Write, tmp_path: Path) -> None:
    loaded = write()
    port = loaded.problem("h1", "services.k26.args.port", "is taken", fix="stop it")
    lines = (tmp_path / "group_vars/all.yml").read_text().splitlines()
    assert port.line is not None
    assert "port: 30001" in lines[port.line - 1]
    assert port.hosts == ("h1",)
    gpus = loaded.problem("h1", "services.k26.gpus", "are busy")
    assert gpus.line is not None
    assert lines[gpus.line - 1] == "  k26:"


_PLACES = ("cuda", "sglang", "services", "rollout", "k26", "args", "secrets", "api_key", "health", "nccl")
_SETTINGS = ("environment", "waves", "gpus", "version", "name", "requirements", "model_path")
_words = st.sampled_from(_PLACES + _SETTINGS)


def _lists_and_mappings(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3)


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | _words
_any = st.recursive(_scalars, _lists_and_mappings, max_leaves=6)
_keys = st.lists(_words, min_size=1, max_size=5).map(".".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(st.dictionaries(_keys, _any, max_size=4))
def test_no_setting_can_make_the_loader_fail(write: Write, overrides: dict[str, object]) -> None:
    loaded = write(overrides=overrides)
    assert bool(loaded.problems) != bool(loaded.deployments)
    text = render(loaded.problems)
    assert not re.search(r"pydantic|https?://|Error|validator|<class", text)


@pytest.mark.parametrize(
    ("version", "other", "known"),
    [
        ("0.5.24", "0.5.23, the nearest older one", "0.5.23"),
        ("0.6.0", "0.5.23, the nearest older one", "0.5.23"),
        ("0.5.10.post9", "0.5.10.post1, the nearest older one", "0.5.10.post1 or 0.5.11 or 0.5.23"),
        ("0.5.4", "0.5.5, the oldest there is", "0.5.5 or 0.5.23"),
    ],
)
def test_a_version_without_a_catalogue_is_a_warning(write: Write, version: str, other: str, known: str) -> None:
    args = {"services.k26.args.pp_async_batch_depth": None, "services.k26.args.grammar_backend": None}
    loaded = write(hosts=("h1", "h2"), overrides={"sglang.version": version, **args})
    assert not loaded.problems
    assert list(loaded.deployments) == ["h1", "h2"]
    (warning,) = loaded.warnings
    assert (warning.rule, warning.key, warning.hosts) == ("SGL002", "sglang.version", ("h1", "h2"))
    assert warning.message == f"no flag catalogue for SGLang {version}; checked against {other}"
    assert warning.fix == f"pin a release that is known, such as {known}"


def test_a_known_version_has_no_warnings(write: Write) -> None:
    assert write().warnings == []


def test_what_the_nearest_catalogue_does_not_take_is_a_warning(write: Write, tmp_path: Path) -> None:
    text = """
sglang: {version: 0.5.24}
services:
  k26:
    args:
      pp_async_batch_dept: 8
      zzzzzz: 1
      cuda_graph_max_bs: 8
      attention_backend: trition
      chunked_prefill_size: many
"""
    loaded = write(hosts=("h1", "h2"), group_vars__prod=text)
    assert not loaded.problems
    assert loaded.deployments["h1"].services["k26"].args.ordered()[-1] == ("chunked_prefill_size", "many")
    assert {warning.rule for warning in loaded.warnings if warning.key != "sglang.version"} == {"SGL003"}
    assert [(warning.line, warning.message.partition(";")[0], warning.fix) for warning in loaded.warnings] == [
        (2, "no flag catalogue for SGLang 0.5.24", "pin a release that is known, such as 0.5.23"),
        (6, "no such argument in SGLang 0.5.23", "did you mean pp_async_batch_depth?"),
        (7, "no such argument in SGLang 0.5.23", ""),
        (8, "gone from SGLang 0.5.23", "use cuda_graph_max_bs_decode"),
        (9, loaded.warnings[4].message.partition(";")[0], "did you mean triton?"),
        (10, "expects a whole number, got 'many' (so it is in SGLang 0.5.23)", ""),
    ]
    assert loaded.warnings[4].message.endswith("got 'trition' (so it is in SGLang 0.5.23)")
    assert "group_vars/prod.yml:6  services.k26.args.pp_async_batch_dept" in render(
        loaded.warnings, relative_to=tmp_path
    )


def test_what_is_wrong_whatever_the_version_stays_an_error(write: Write) -> None:
    text = "{sglang: {version: 0.5.24}, services: {k26: {args: {tensor_parallel_size: 8, port: 0}}}}"
    loaded = write(host_vars__h1=text)
    assert [problem.key for problem in loaded.problems] == [
        "services.k26.args.port",
        "services.k26.args.tensor_parallel_size",
    ]
    assert [warning.rule for warning in loaded.warnings] == ["SGL002"]
    assert not loaded.deployments


def test_a_typed_setting_of_a_later_release_is_an_error(write: Write) -> None:
    (problem,) = write(overrides={"sglang.version": "0.5.6.post2"}).problems
    assert problem.key == "services.k26.args.pp_async_batch_depth"
    assert problem.message == "not in SGLang 0.5.6.post2 yet; there since 0.5.7"


def test_another_name_of_a_typed_setting_is_one_in_every_release(write: Write) -> None:
    overrides = {"sglang.version": "0.5.9", "services.k26.args.tensor_parallel_size": 8}
    (problem,) = write(overrides=overrides).problems
    assert (problem.message, problem.fix) == ("is another name of tp_size", "write tp_size")


def test_a_secret_argument_of_a_later_release(write: Write) -> None:
    secret = {"services.k26.secrets.admin_api_key": {"env": "X"}}
    old = {"sglang.version": "0.5.7", **secret}
    (problem,) = write(overrides=old).problems
    assert problem.key == "services.k26.secrets.admin_api_key"
    assert problem.message == "not in SGLang 0.5.7 yet; there since 0.5.8"
    older = {"sglang.version": "0.5.4", **secret, "services.k26.args.pp_async_batch_depth": None}
    assert {(warning.rule, warning.key) for warning in write(overrides=older).warnings} == {
        ("SGL002", "sglang.version"),
        ("SGL003", "services.k26.secrets.admin_api_key"),
    }


def test_a_catalogue_of_ones_own(write: Write, tmp_path: Path) -> None:
    write()

    def none(version: str) -> Catalogue:
        raise LookupError(f"no {version} here")

    loaded = load(folder=tmp_path, hosts={"h1": []}, overrides={}, catalogue=none)
    assert [(problem.key, problem.message) for problem in loaded.problems] == [("sglang.version", "no 0.5.23 here")]


@pytest.mark.parametrize("written", [8192, "8k", "4Ki", "1.5M"])
def test_a_context_length_may_be_written_as_sglang_takes_it(write: Write, written: object) -> None:
    loaded = write(overrides={"services.k26.args.context_length": written})
    assert loaded.deployments["h1"].services["k26"].args.context_length == written


@pytest.mark.parametrize("written", [0, -1, "8K", "long", True, 0.5, "k"])
def test_a_context_length_that_is_none(wrong: Wrong, written: object) -> None:
    assert wrong(services__k26__args__context_length=written).message.startswith("expects a whole number of tokens")


_SECRET = "hf_5f3cSecret"  # noqa: S105  # no real one


@pytest.mark.parametrize(
    "lines",
    [
        f"extra_args: --api-key {_SECRET}",
        f"extra_args: {_SECRET}",
        f"extra_args: {{x: {_SECRET}}}",
        f"extra_args: [[{_SECRET}]]",
        f"environment: HF_TOKEN={_SECRET}",
        f"environment: {_SECRET}",
        f"environment: [{_SECRET}]",
        f"environment: {{PLAIN: [{_SECRET}]}}",
        f"environment: {{'HF_TOKEN={_SECRET}': x}}",
        f"environment: {{X: !!int {_SECRET}}}",
        f"environment: {{X: !{_SECRET} y}}",
        f"environment: {{X: *{_SECRET}}}",
        f"secrets: api_key={_SECRET}",
        f"secrets: {_SECRET}",
        f"secrets: {{api_key: {{file: 1, env: {_SECRET}-}}}}",
        f"args: --hf-token {_SECRET}",
        f"args: {{model_path: m, port: --hf-token {_SECRET}}}",
        f"args: {{model_path: m, served_model_name: 'hf_token={_SECRET}:x'}}",
        f"args: {{model_path: m, watchdog_timeout: 'HF_TOKEN={_SECRET}'}}",
        f"args: {{model_path: m, watchdog_timeout: 'HF_TOKEN={_SECRET} and so on, much longer than can be shown'}}",
        f"args: {{model_path: m, --hf-token {_SECRET}: true}}",
        f"user: HF_TOKEN={_SECRET}",
        f"unit: HF_TOKEN={_SECRET}",
        f"gpus: TOKEN={_SECRET}",
        f"limits: TOKEN={_SECRET}",
        f"TOKEN={_SECRET}: 1",
    ],
)
def test_what_may_be_a_secret_is_never_shown_whatever_is_wrong_with_it(write: Write, lines: str) -> None:
    args = "" if lines.startswith("args") else "    args: {model_path: m}\n"
    problems = write(host_vars__h1=f"services:\n  k26:\n    {lines}\n{args}").problems
    assert problems
    assert _SECRET not in render(problems)
    assert _SECRET not in json.dumps([problem_json(problem) for problem in problems])


def test_text_in_place_of_a_mapping_is_named_by_its_kind(write: Write) -> None:
    (problem,) = write(overrides={"services.k26.environment": "PLAIN=1"}).problems
    assert problem.message == "expects a mapping, got text"
    (problem,) = write(overrides={"services.k26.extra_args": 12}).problems
    assert problem.message == "expects a list, got a number"


@pytest.mark.parametrize("value", ["0,1", "a long one"])
def test_what_is_plain_is_shown(write: Write, value: str) -> None:
    (problem,) = write(overrides={"services.k26.gpus": value}).problems
    assert problem.message == f"expects a list, got {value!r}"
