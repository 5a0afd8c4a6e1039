"""A model folder made on the spot: a small Llama without weights (`--load-format dummy` makes them up)."""

import json
from pathlib import Path

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
    "vocab_size": 256,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 0,
    "eos_token_id": 1,
}


def make(folder: Path, **settings: object) -> Path:
    """Write the folder; settings replace those of its config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config = LLAMA | settings
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(_tokenizer(256)))
    tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    return folder


def _tokenizer(size: int) -> dict[str, object]:
    """One token a word: `<s>`, `</s>`, `<unk>`, and `w3` onwards."""
    vocabulary = {"<s>": 0, "</s>": 1, "<unk>": 2} | {f"w{number}": number for number in range(3, size)}
    special = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": text, **special} for number, text in enumerate(list(vocabulary)[:3])
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }
