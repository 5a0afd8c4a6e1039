"""A model folder like a real one, a few kilobytes small: two valid safetensors shards with their index.

config.json has the size of the real model, since deploys judge settings by it; the shards have not.
"""

import json
import struct

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
_SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    SHARDS[0]: {"model.embed_tokens.weight": (64, 16), "model.layers.0.self_attn.q_proj.weight": (16, 16)},
    SHARDS[1]: {"model.norm.weight": (16,), "lm_head.weight": (64, 16)},
}
_BYTES_OF_F32 = 4


def _size(shape: tuple[int, ...]) -> int:
    size = _BYTES_OF_F32
    for length in shape:
        size *= length
    return size


def _shard(shapes: dict[str, tuple[int, ...]]) -> bytes:
    """One shard: a little-endian length, a JSON header of that length, the tensors end to end."""
    header: dict[str, object] = {}
    end = 0
    for name, shape in shapes.items():
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [end, end + _size(shape)]}
        end += _size(shape)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the format asks for data that starts on eight bytes
    return struct.pack("<Q", len(text)) + text + bytes(end)


def files() -> dict[str, bytes]:
    """Every file of the model folder, by name."""
    weights = {tensor: shard for shard, shapes in _SHAPES.items() for tensor in shapes}
    total = sum(_size(shape) for shapes in _SHAPES.values() for shape in shapes.values())
    config: dict[str, object] = {
        "architectures": ["KimiK2ForCausalLM"],
        "model_type": "kimi_k2",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "vocab_size": 163840,
        "max_position_embeddings": 262144,
        "torch_dtype": "float32",
    }
    texts: dict[str, object] = {
        "config.json": config,
        "generation_config.json": {"eos_token_id": 1},
        "tokenizer_config.json": {"model_max_length": 262144, "tokenizer_class": "PreTrainedTokenizerFast"},
        "tokenizer.json": {
            "version": "1.0",
            "model": {"type": "BPE", "vocab": {"a": 0, "</s>": 1}, "merges": []},
        },
        "model.safetensors.index.json": {"metadata": {"total_size": total}, "weight_map": weights},
    }
    plain = {name: json.dumps(value, indent=2).encode() + b"\n" for name, value in texts.items()}
    return plain | {name: _shard(shapes) for name, shapes in _SHAPES.items()}
