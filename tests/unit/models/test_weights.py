import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.models import ModelFacts, ModelUnreadable, read_facts
from sglang_fleet.models.weights import Layer, read_weights, sorted_out

DENSE = ModelFacts(num_hidden_layers=2)
MLA = ModelFacts(num_hidden_layers=2, kv_lora_rank=512)


def safetensors(path: Path, tensors: dict[str, int]) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name, size in tensors.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [start, start + size]}
        start += size
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)  # what follows is never read


@pytest.mark.parametrize(
    ("name", "facts", "split"),
    [
        ("model.layers.1.self_attn.q_proj.weight", DENSE, "attention"),
        ("model.layers.1.self_attn.o_proj.qweight", DENSE, "attention"),
        ("model.layers.1.self_attn.k_proj.weight", DENSE, "kv_heads"),
        ("model.layers.1.self_attn.v_proj.bias", DENSE, "kv_heads"),
        ("model.layers.1.self_attn.q_norm.weight", DENSE, "replicated"),
        ("model.layers.1.self_attn.k_proj.weight", MLA, "attention"),
        ("model.layers.1.self_attn.kv_b_proj.weight_scale_inv", MLA, "attention"),
        ("model.layers.1.self_attn.kv_a_proj_with_mqa.weight", MLA, "replicated"),
        ("model.layers.1.self_attn.q_a_proj.weight", MLA, "replicated"),
        ("model.layers.1.self_attn.indexer.wk.weight", MLA, "replicated"),
        ("model.layers.1.mlp.down_proj.weight", DENSE, "dense"),
        ("language_model.model.layers.1.mlp.shared_experts.up_proj.weight_packed", MLA, "dense"),
        ("language_model.model.layers.1.mlp.experts.17.up_proj.weight_packed", MLA, "experts"),
        ("model.layers.1.mlp.experts.gate_up_proj_blocks", DENSE, "experts"),
        ("model.layers.1.mlp.gate.weight", DENSE, "replicated"),
        ("model.layers.1.mlp.gate.e_score_correction_bias", DENSE, "replicated"),
        ("model.layers.1.mlp.gate_proj.weight", DENSE, "dense"),
        ("model.layers.1.linear_attn.in_proj_qkvz.weight", DENSE, "attention"),
        ("model.layers.1.input_layernorm.weight", DENSE, "replicated"),
        ("transformer.h.1.attn.c_attn.weight", DENSE, "attention"),
    ],
)
def test_how_a_tensor_is_split(name: str, facts: ModelFacts, split: str) -> None:
    found = sorted_out([(name, 7)], facts)
    assert found.layers == (Layer(), Layer(**{split: 7}))


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("model.embed_tokens.weight", "embedding"),
        ("lm_head.weight", "head"),
        ("model.norm.weight", "rest"),
        ("vision_tower.encoder.blocks.0.attn.qkv.weight", "rest"),
        ("visual.blocks.1.mlp.down_proj.weight", "rest"),
        ("mm_projector.linear_1.weight", "rest"),
    ],
)
def test_what_is_in_no_layer(name: str, where: str) -> None:
    found = sorted_out([(name, 7)], DENSE)
    assert found.total == 7
    assert getattr(found, where) == 7


@pytest.mark.parametrize("name", ["model.layers.2.mlp.up_proj", "mtp.layers.0.mlp.up_proj", "model.mtp_layers.0.a"])
def test_layers_of_multi_token_prediction_are_not_loaded(name: str) -> None:
    assert sorted_out([(f"{name}.weight", 7)], DENSE).total == 0


def test_a_copy_of_a_tied_embedding_counts_once() -> None:
    tensors = [("model.embed_tokens.weight", 7), ("lm_head.weight", 7)]
    assert sorted_out(tensors, ModelFacts(tied_embeddings=True)).total == 7
    assert sorted_out(tensors[1:], ModelFacts(tied_embeddings=True)).total == 7


def test_the_headers_of_all_shards_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"num_hidden_layers": 2}))
    shards = {"a.safetensors": {"model.layers.0.mlp.up_proj.weight": 1 << 40}, "b.safetensors": {"lm_head.weight": 5}}
    names = {tensor: shard for shard, tensors in shards.items() for tensor in tensors}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    safetensors(tmp_path / "a.safetensors", shards["a.safetensors"])
    assert read_weights(tmp_path, DENSE) is None  # b is missing
    safetensors(tmp_path / "b.safetensors", shards["b.safetensors"])
    found = read_weights(tmp_path, read_facts(tmp_path))
    assert found is not None
    assert (found.layers[0].dense, found.head, found.total, found.source) == (1 << 40, 5, (1 << 40) + 5, "headers")


def test_without_safetensors_there_are_no_headers(tmp_path: Path) -> None:
    assert read_weights(tmp_path, DENSE) is None
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    assert read_weights(tmp_path, DENSE) is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not a safetensors file"),
        (b"\xff" * 16, "is not a safetensors file"),
        (b"\x02" + b"\0" * 7 + b"[]", "is not a safetensors file"),
        (b"\x03" + b"\0" * 7 + b"{", "is not a safetensors file"),
        (b"\x08" + b"\0" * 7 + b'{"a":{} ', "is not a safetensors file"),
        (b"\x08" + b"\0" * 7 + b'{"a":{}}', "has no size for a"),
        (b"\x08" + b"\0" * 7 + b'{"a": 1}', "has no size for a"),
        (b"\x1b" + b"\0" * 7 + b'{"a":{"data_offsets":[9,2]}', "is not a safetensors file"),
        (b"\x1c" + b"\0" * 7 + b'{"a":{"data_offsets":[9,2]}}', "has no size for a"),
    ],
)
def test_a_file_that_is_something_else_is_named(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelUnreadable, match=why):
        read_weights(tmp_path, DENSE)


@given(st.lists(st.tuples(st.text(), st.integers(0, 1 << 50))), st.sampled_from([DENSE, MLA, ModelFacts()]))
def test_any_names_are_survived_and_nothing_is_counted_twice(tensors: list[tuple[str, int]], facts: ModelFacts) -> None:
    assert sorted_out(tensors, facts).total <= sum(size for _, size in tensors)
