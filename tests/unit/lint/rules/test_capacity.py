import pytest

from sglang_fleet.lint.rules import capacity
from sglang_fleet.models import parse_facts
from sglang_fleet.sizing import size
from tests.unit.lint.views import ask, host, view

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "max_position_embeddings": 131072,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}
LLAMA_70B = parse_facts(CONFIG, weight_bytes=141_107_412_992, shards=30)


def test_weights_larger_than_the_gpu() -> None:
    (found,) = ask("SGL240", view({"mem_fraction_static": 0.88}, model=LLAMA_70B, state=host(count=1)))
    assert found.key == "services.k26.args.mem_fraction_static"
    assert "weights take 131.4 GiB" in found.message


def test_weights_shared_by_four_gpus() -> None:
    one = view({"tp_size": 4, "mem_fraction_static": 0.88}, model=LLAMA_70B, state=host(count=4))
    assert not ask("SGL240", one)
    assert not ask("SGL241", one)


def test_a_cache_shorter_than_the_context() -> None:
    one = view({"tp_size": 2, "mem_fraction_static": 0.75}, model=LLAMA_70B, state=host(count=2))
    assert not ask("SGL240", one)
    assert ask("SGL241", one)[0].key == "services.k26.args.context_length"


def test_nothing_is_said_without_the_model_or_the_host() -> None:
    for one in (view(model=LLAMA_70B), view(state=host(count=1)), view(model=LLAMA_70B, state=host(count=0))):
        assert not ask("SGL240", one)
        assert not ask("SGL241", one)


def test_equal_hosts_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    def counting(*args: object, **more: object) -> object:
        counted.append(more["gpu_memory"])
        return size(*args, **more)  # type: ignore[arg-type]  # handed on as they are

    monkeypatch.setattr("sglang_fleet.sizing.size", counting)
    capacity._KNOWN.clear()  # noqa: SLF001  # what earlier tests left there
    args = {"tp_size": 2, "mem_fraction_static": 0.75}
    found = [
        ask(rule, view(args, model=LLAMA_70B, state=host(count=2, memory_mib=mib)))
        for mib in (97887, 97887, 81920, 97887)
        for rule in ("SGL240", "SGL241")
    ]
    assert len(counted) == 2
    assert found[1] == found[3] == found[7] != found[5]
    assert ask("SGL241", view({**args, "context_length": 4096}, model=LLAMA_70B, state=host(count=2))) != found[1]


def test_what_is_remembered_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "_MOST", 2)
    for length in (1024, 2048, 4096, 8192):
        ask("SGL240", view({"context_length": length}, model=LLAMA_70B, state=host(count=1)))
        assert len(capacity._KNOWN) <= 2  # noqa: SLF001  # there is no other way to see it
