"""A model that SGLang can serve, made on the spot: a small Llama with random weights, the same ones every time.

Answers mean nothing, and without sampling they are the same on every host, with every number of stages.
"""

import json
import random
import struct
from array import array
from functools import cache

VOCABULARY = 256
LLAMA: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "vocab_size": VOCABULARY,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 0,
    "eos_token_id": 1,
}
_SPECIAL = ("<s>", "</s>", "<unk>")


def texts() -> dict[str, object]:
    """The folder's JSON files, by name."""
    return {
        "config.json": LLAMA,
        "tokenizer.json": _tokenizer(),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": _SPECIAL[0],
            "eos_token": _SPECIAL[1],
        },
    }


@cache
def files() -> dict[str, bytes]:
    """Every file of the folder, weights included, by name."""
    plain = {name: json.dumps(value, indent=1).encode() + b"\n" for name, value in texts().items()}
    return plain | {"model.safetensors": _safetensors(_shapes())}


def _shapes() -> dict[str, tuple[int, ...]]:
    """Tensor → shape, as transformers' Llama names them."""
    hidden, inner, heads = 64, 128, 32  # heads: two for K and V, of 16
    layer = {
        "input_layernorm": (hidden,),
        "self_attn.q_proj": (hidden, hidden),
        "self_attn.k_proj": (heads, hidden),
        "self_attn.v_proj": (heads, hidden),
        "self_attn.o_proj": (hidden, hidden),
        "post_attention_layernorm": (hidden,),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    layers = {f"model.layers.{number}.{name}": shape for number in range(2) for name, shape in layer.items()}
    ends = {"model.embed_tokens": (VOCABULARY, hidden), "model.norm": (hidden,), "lm_head": (VOCABULARY, hidden)}
    return {f"{name}.weight": shape for name, shape in (layers | ends).items()}


def _safetensors(shapes: dict[str, tuple[int, ...]]) -> bytes:
    """A little-endian length, a JSON header of that length, the tensors end to end."""
    header: dict[str, object] = {}
    tensors, end = [], 0
    for name, shape in shapes.items():
        tensors.append(_weights(name, shape))
        start, end = end, end + len(tensors[-1])
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the format asks for data that starts on eight bytes
    return struct.pack("<Q", len(text)) + text + b"".join(tensors)


def _weights(name: str, shape: tuple[int, ...]) -> bytes:
    """Random numbers of a size that keeps activations in bounds; ones for a norm."""
    if len(shape) == 1:
        return _bfloat16([1.0] * shape[0])
    rows, columns = shape
    spread = 1.0 if "embed" in name else (3.0 / columns) ** 0.5
    numbers = random.Random(name)  # noqa: S311  # the same weights every time are the point
    values = [numbers.uniform(-spread, spread) for _ in range(rows * columns)]
    if name == "lm_head.weight":
        # An answer must not end, or hold what is no word, before it has the length that was asked for.
        values[: len(_SPECIAL) * columns] = [0.0] * (len(_SPECIAL) * columns)
    return _bfloat16(values)


def _bfloat16(values: list[float]) -> bytes:
    """The upper halves of the numbers as float32."""
    plain = array("f", values).tobytes()
    return b"".join(plain[at + 2 : at + 4] for at in range(0, len(plain), 4))


def _tokenizer() -> dict[str, object]:
    """One token a word: `<s>`, `</s>`, `<unk>`, and `w3` onwards."""
    words = [*_SPECIAL, *(f"w{number}" for number in range(len(_SPECIAL), VOCABULARY))]
    special = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, "content": text, **special} for number, text in enumerate(_SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(words)},
            "unk_token": _SPECIAL[2],
        },
    }
