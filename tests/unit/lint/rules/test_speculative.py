from typing import Any

import pytest

from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

EAGLE = {"speculative_algorithm": "EAGLE"}
STEPS, TOP, TOKENS = "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"
DRAFT = "speculative_draft_model_path"
CHAIN = {**EAGLE, STEPS: 3, TOP: 1, TOKENS: 4}


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL420", STEPS, args={**EAGLE, STEPS: 3}, words=TOP),
        finds("SGL420", TOP, args={**EAGLE, TOP: 1, TOKENS: 4}, words=STEPS),
        finds("SGL420", TOKENS, args={"speculative_algorithm": "NEXTN", TOKENS: 4}, version="0.5.9"),
        finds("SGL421", TOKENS, args={**CHAIN, TOKENS: 8}, words="replaced by 4"),
        finds("SGL422", DRAFT, args={DRAFT: "/models/draft"}),
        finds("SGL422", STEPS, args={STEPS: 3, TOP: 1}),
        finds(
            "SGL426",
            "speculative_algorithm",
            args={"speculative_algorithm": "NGRAM", "tp_size": 8, "attn_dp_size": 8},
            words="NGRAM",
        ),
        finds("SGL428", TOP, args={**CHAIN, TOP: 4, "attention_backend": "flashmla"}, words="pages of 64"),
        finds("SGL428", TOP, args={**CHAIN, TOP: 4, "attention_backend": "triton", "page_size": 16}, version="0.5.12"),
        finds("SGL428", TOP, args={**CHAIN, TOP: 4, "attention_backend": "fa3", "page_size": 16}, version="0.5.5"),
        finds(
            "SGL428",
            "speculative_algorithm",
            args={"speculative_algorithm": "NGRAM", "attention_backend": "fa3", "page_size": 64},
            words="10 branches",
        ),
        finds("SGL423", "speculative_algorithm", args={"speculative_algorithm": "DFLASH"}),
        finds("SGL424", "speculative_algorithm", args={"speculative_algorithm": "EAGLE3"}),
        finds("SGL424", "speculative_algorithm", args={"speculative_algorithm": "STANDALONE"}),
        finds("SGL425", "speculative_algorithm", args=EAGLE),
        finds("SGL426", TOP, args={**CHAIN, TOP: 4, "attention_backend": "trtllm_mha"}),
        finds("SGL426", "attention_backend", args={**CHAIN, "attention_backend": "flex_attention"}),
        finds(
            "SGL426",
            "speculative_algorithm",
            args={"speculative_algorithm": "STANDALONE", "tp_size": 8, "attn_dp_size": 8},
        ),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL420", args=EAGLE),
        passes("SGL420", args=CHAIN),
        passes("SGL420", args={**EAGLE, STEPS: 3, TOP: 1}),
        passes("SGL420", args={"speculative_algorithm": "NGRAM", TOKENS: 8}),
        passes("SGL420", args={**EAGLE, STEPS: 3, "speculative_adaptive": True}),
        passes("SGL420", args={TOKENS: 8}),
        passes("SGL421", args=CHAIN),
        passes("SGL421", args={**EAGLE, STEPS: 3, TOP: 4, TOKENS: 16}),
        passes("SGL422", args={**EAGLE, DRAFT: "/models/draft"}),
        passes("SGL422", args=EAGLE),
        passes("SGL422", args={STEPS: 3, TOP: 1, **EAGLE}),
        passes("SGL426", args={"speculative_algorithm": "NGRAM", "tp_size": 8}),
        passes("SGL428", args={**CHAIN, "attention_backend": "flashmla"}),
        passes("SGL428", args={**CHAIN, TOP: 4, "attention_backend": "triton", "page_size": 16}),
        passes("SGL428", args={**CHAIN, TOP: 4, "attention_backend": "triton"}, version="0.5.12"),
        passes("SGL428", args={**CHAIN, TOP: 4, "page_size": 16}),
        passes("SGL428", args={**CHAIN, TOP: 4, "attention_backend": "trtllm_mha"}),
        passes("SGL428", args={"speculative_algorithm": "NGRAM", "attention_backend": "fa3"}),
        passes("SGL428", args={"speculative_algorithm": "NGRAM", "attention_backend": "flashinfer", "page_size": 64}),
        passes(
            "SGL428",
            args={
                "speculative_algorithm": "NGRAM",
                "speculative_ngram_max_bfs_breadth": 1,
                "attention_backend": "fa3",
                "page_size": 64,
            },
        ),
        passes("SGL423", args={"speculative_algorithm": "DFLASH", DRAFT: "/models/draft"}),
        passes("SGL424", args=EAGLE),
        passes("SGL424", args={"speculative_algorithm": "EAGLE3", DRAFT: "/models/draft"}),
        passes("SGL424", args={"speculative_algorithm": "EAGLE3", "enable_return_aux_hidden_states": True}),
        passes("SGL425", args={**EAGLE, "max_running_requests": 64}),
        passes("SGL425", args={}),
        passes("SGL426", args={**CHAIN, "attention_backend": "trtllm_mha"}),
        passes("SGL426", args={"attention_backend": "flex_attention"}),
        passes("SGL426", args={"speculative_algorithm": "STANDALONE", "tp_size": 8}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
