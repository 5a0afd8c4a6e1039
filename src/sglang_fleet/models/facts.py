"""What is known of a model without loading it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What config.json and the weight files of a model say. None (or an empty tuple): they do not say.

    Attributes:
        architectures: as config.json has them, the first is the one that SGLang loads.
        model_type: that of the language model, where config.json nests one.
        num_hidden_layers: layers of the language model, without those of multi-token prediction.
        num_attention_heads: query heads.
        num_key_value_heads: heads of K and V; equal to the query heads when the model does not group them.
        hidden_size: the width of the residual stream.
        head_dim: width of one head; hidden_size / num_attention_heads where config.json leaves it out. With MLA only
            what config.json says.
        v_head_dim: width of a head of V, where it is not head_dim.
        kv_lora_rank: with MLA: the width of the compressed K and V of a token in one layer.
        qk_rope_head_dim: with MLA: the width of the part of K that carries the position.
        qk_nope_head_dim: with MLA: the width of the rest of a query head.
        q_lora_rank: with MLA: the rank of the query projection.
        index_head_dim: with sparse attention (DeepSeek V3.2): the width of the indexer's key.
        index_topk: with sparse attention: how many tokens are looked at.
        context_length: the longest context that SGLang derives from it.
        quantization: the method, such as "fp8", "compressed-tensors", "awq", "modelopt_fp4".
        weight_bits: bits of a quantized weight.
        group_size: weights that share one scale.
        weight_block: rows and columns of the blocks that share one scale, with FP8 in blocks.
        kv_cache_quantization: the type of K and V that the weights were calibrated for, such as "FP8".
        unquantized: names or, after "re:", patterns of modules that are left as they were.
        torch_dtype: the type of unquantized weights and activations, such as "bfloat16".
        num_experts: routed experts in a layer of a mixture of experts.
        experts_per_token: how many of them one token goes through.
        shared_experts: experts that every token goes through.
        shared_expert_intermediate_size: width of the shared expert, where it is not that of the others.
        dense_layers: layers at the start that have no experts.
        intermediate_size: width of a dense MLP.
        moe_intermediate_size: width of one expert.
        vocab_size: tokens in the vocabulary.
        tied_embeddings: whether the output layer is the embedding.
        nextn_layers: layers of multi-token prediction, after the others; only speculative decoding loads them.
        recurrent: the setting in config.json that shows layers of linear attention or Mamba.
        full_attention_layers: where there are such layers: those that are not; None: not known which.
        irregular: a setting in config.json that shows a cache whose layers are not all alike.
        needs_remote_code: whether the model comes with code of its own (auto_map). None when config.json names none,
            and nobody has read the files of its tokenizer, which may.
        has_vision: whether it has an encoder for images.
        weight_bytes: bytes of all weights.
        shards: files that hold the weights; 0 when none is known.
    """

    architectures: tuple[str, ...] = ()
    model_type: str | None = None
    num_hidden_layers: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    hidden_size: int | None = None
    head_dim: int | None = None
    v_head_dim: int | None = None
    kv_lora_rank: int | None = None
    qk_rope_head_dim: int | None = None
    qk_nope_head_dim: int | None = None
    q_lora_rank: int | None = None
    index_head_dim: int | None = None
    index_topk: int | None = None
    context_length: int | None = None
    quantization: str | None = None
    weight_bits: int | None = None
    group_size: int | None = None
    weight_block: tuple[int, int] | None = None
    kv_cache_quantization: str | None = None
    unquantized: tuple[str, ...] = ()
    torch_dtype: str | None = None
    num_experts: int | None = None
    experts_per_token: int | None = None
    shared_experts: int | None = None
    shared_expert_intermediate_size: int | None = None
    dense_layers: int | None = None
    intermediate_size: int | None = None
    moe_intermediate_size: int | None = None
    vocab_size: int | None = None
    tied_embeddings: bool | None = None
    nextn_layers: int | None = None
    recurrent: str | None = None
    full_attention_layers: tuple[int, ...] | None = None
    irregular: str | None = None
    needs_remote_code: bool | None = None
    has_vision: bool | None = None
    weight_bytes: int | None = None
    shards: int = 0
