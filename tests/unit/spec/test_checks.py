from collections.abc import Callable

import pytest

from sglang_fleet.problems import Problem
from sglang_fleet.spec import Loaded

Write = Callable[..., Loaded]
Wrong = Callable[..., Problem]


def keys(write: Write, text: str) -> list[tuple[str, str]]:
    return [(problem.key, problem.message) for problem in write(host_vars__h1=text).problems]


def two(**other: object) -> dict[str, object]:
    return {
        "services.k26.gpus": [0, 1, 2, 3, 4, 5, 6, 7],
        "services.b": {"args": {"model_path": "/m", "port": 30002}, "gpus": [8], **other},
    }


def test_two_services_with_their_own_ports_and_gpus(write: Write) -> None:
    assert not write(overrides=two()).problems


@pytest.mark.parametrize(
    ("other", "key", "message"),
    [
        ({"args": {"model_path": "/m", "port": 30001}}, "services.b.args.port", "is k26's port too: 30001"),
        ({"gpus": [7, 8, 0]}, "services.b.gpus", "shares GPU 0, 7 with k26"),
        ({"gpus": None}, "services.b.gpus", "is not set, so that b uses all GPUs, and k26 has none left"),
        ({"unit": "sglang-k26.service"}, "services.b.unit", "is k26's unit too: sglang-k26.service"),
    ],
)
def test_two_services_must_not_share(write: Write, other: dict[str, object], key: str, message: str) -> None:
    (problem,) = write(overrides=two(**other)).problems
    assert (problem.key, problem.message) == (key, message)


def test_a_service_on_the_cpu_takes_no_gpu_from_another(write: Write) -> None:
    on_cpu = {"model_path": "/m", "port": 30002, "device": "cpu"}
    assert not write(overrides=two(args=on_cpu, gpus=None)).problems
    on_cpu = {"model_path": "/m", "port": 30002}
    assert not write(overrides=two(args=on_cpu, extra_args=["--device", "cpu"], gpus=None)).problems


@pytest.mark.parametrize("words", [["--device", "cpu"], ["--device=cpu"], ["--device=cuda", "--device", "cpu"]])
def test_it_is_on_the_cpu_when_extra_args_say_so(write: Write, words: list[str]) -> None:
    assert not write(overrides=two(extra_args=words, gpus=None)).problems
    assert not write(overrides=two(extra_args=words, gpus=[0])).problems


@pytest.mark.parametrize("words", [["--device", "cuda"], ["--device=cuda"], ["--device", "cpu", "--device=cuda"]])
def test_it_is_on_the_gpus_when_extra_args_say_so(write: Write, words: list[str]) -> None:
    (problem,) = write(overrides=two(extra_args=words, gpus=None)).problems
    assert (problem.key, problem.fix) == ("services.b.gpus", "name the GPUs of each service: gpus: [0, 1]")


def test_two_devices_are_refused_and_the_last_one_counts(write: Write) -> None:
    on_cpu = {"model_path": "/m", "port": 30002, "device": "cpu"}
    other = two(args=on_cpu, extra_args=["--device", "cuda"], gpus=None)
    assert [problem.key for problem in write(overrides=other).problems] == ["services.b.extra_args", "services.b.gpus"]


def test_what_only_does_nothing_is_no_error(write: Write) -> None:
    assert not write(overrides={"services.k26.args.pp_size": 1}).problems


def test_gpus_are_named_once(write: Write) -> None:
    text = 'services: {k26: {gpus: [0, 1, 2, 3, 4, 5, 6, 7], environment: {CUDA_VISIBLE_DEVICES: "0,1"}}}'
    message = "is set twice: gpus says as well which GPUs the server may use"
    assert keys(write, text) == [("services.k26.environment.CUDA_VISIBLE_DEVICES", message)]
    assert not keys(write, text.replace("gpus: [0, 1, 2, 3, 4, 5, 6, 7]", "gpus: null"))


def test_a_variable_is_set_once(write: Write) -> None:
    text = "services: {k26: {environment: {NCCL_ALGO: Tree, TOKEN: x}, secrets: {TOKEN: {env: T}}}}"
    assert keys(write, text) == [
        ("services.k26.environment.NCCL_ALGO", "is set twice: nccl has algo as well"),
        ("services.k26.environment.TOKEN", "is set twice: secrets has it as well"),
    ]


@pytest.mark.parametrize(
    ("name", "value", "message", "fix"),
    [
        ("atention_backend", "triton", "no such argument in SGLang 0.5.23", "did you mean"),
        ("attention_backend", "trition", "must be one of", "did you mean triton?"),
        ("attention_backend", "zzzz", "must be one of", ""),
        ("chunked_prefill_size", "many", "expects a whole number", ""),
        ("tensor_parallel_size", 8, "is another name of tp_size", "write tp_size"),
        ("pp-size", 8, "is no name of an argument", "write pp_size: SGLang's flag with underscores"),
        ("--pp-size", 8, "is no name of an argument", "write pp_size: SGLang's flag with underscores"),
        ("Port", 8, "is no name of an argument", "write port: SGLang's flag with underscores"),
        ("Pp-Size", 8, "is no name of an argument", "write pp_size: SGLang's flag with underscores"),
        ("api_key", "x", "is a secret", "say where it is, in the service's secrets: {api_key: {env: NAME}}"),
        ("config", "x.yaml", "cannot be set here", "remove it, and write each argument as a key of its own"),
        ("served_model_name", "a:b", "holds ':', which SGLang refuses", "use another character"),
        (
            "cuda_graph_max_bs",
            8,
            "gone from SGLang 0.5.23; 0.5.19 was the last with it",
            "use cuda_graph_max_bs_decode",
        ),
        ("torchao_config", "int8wo", "gone from SGLang 0.5.23; 0.5.17 was the last with it", ""),
    ],
)  # fmt: skip
def test_arguments_are_those_of_the_release(
    wrong: Wrong, name: str, value: object, message: str, fix: str | None
) -> None:
    problem = wrong(services__k26__args={name: value})
    assert problem.key == f"services.k26.args.{name}"
    assert problem.message.startswith(message)
    assert fix is None or problem.fix.startswith(fix)


def test_other_arguments_of_the_release_are_kept_in_order(write: Write) -> None:
    args = {"chunked_prefill_size": 4096, "lora_paths": ["a", "b"], "json_model_override_args": {"a": [1]}}
    loaded = write(overrides={"services.k26.args": args})
    assert not loaded.problems
    ordered = loaded.deployments["h1"].services["k26"].args.ordered()
    assert ordered[-3:] == list(args.items())


def test_a_lower_case_secret_is_an_argument_of_the_release(wrong: Wrong) -> None:
    problem = wrong(services__k26__secrets__hf_token={"env": "X"})
    assert problem.message == "is no argument of this SGLang"


def test_arguments_are_checked_although_something_else_is_wrong(write: Write) -> None:
    text = "cuda: {source: yum}\nservices: {k26: {user: 7, args: {nonsense_size: 1}}}"
    assert [key for key, _ in keys(write, text)] == [
        "cuda.source",
        "services.k26.args.nonsense_size",
        "services.k26.user",
    ]


def test_a_file_of_the_operators_must_not_let_sglang_log_a_key(wrong: Wrong) -> None:
    problem = wrong(services__k26__environment__SGLANG_LOGGING_CONFIG_PATH="/x.json")
    assert problem.message.startswith("would let SGLang log api_key")


@pytest.mark.parametrize(
    ("setting", "value", "probe", "key"),
    [
        ("is_embedding", True, "generate", "services.k26.health.probe"),
        ("is_embedding", True, "embedding", None),
        ("is_embedding", True, "alive", None),
        ("is_embedding", True, None, None),
        ("encoder_only", True, "embedding", "services.k26.health.probe"),
        ("disaggregation_mode", "prefill", "generate", "services.k26.health.probe"),
        ("disaggregation_mode", "prefill", "embedding", "services.k26.health.probe"),
        ("disaggregation_mode", "prefill", "alive", None),
        ("disaggregation_mode", "prefill", None, None),
        ("disaggregation_mode", "null", "generate", None),
        ("smg_grpc_mode", True, "alive", "services.k26.args.smg_grpc_mode"),
    ],
)
def test_the_gate_must_be_able_to_get_its_answer(
    write: Write, setting: str, value: object, probe: str | None, key: str | None
) -> None:
    overrides = {f"services.k26.args.{setting}": value, "services.k26.health.probe": probe}
    assert [problem.key for problem in write(overrides=overrides).problems] == ([key] if key else [])


@pytest.mark.parametrize(
    ("health", "args", "fix"),
    [
        ({"golden": {"prompts": ["a"]}}, {"is_embedding": True}, "remove it"),
        ({"throughput": {}, "probe": "alive"}, {}, "remove it, or write probe: generate"),
    ],
)
def test_a_proof_needs_completions_that_are_asked_for(
    wrong: Wrong, health: dict[str, object], args: dict[str, object], fix: str
) -> None:
    problem = wrong(services__k26__health=health, services__k26__args=args)
    assert problem.key == f"services.k26.health.{next(iter(health))}"
    assert problem.fix == fix
