from typing import Any

import pytest

from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

ON = {"enable_hierarchical_cache": True}


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL220", "enable_hierarchical_cache", args={**ON, "disable_radix_cache": True}, version="0.5.5"),
        finds("SGL220", "enable_hicache", args={"enable_hicache": True, "disable_radix_cache": True}),
        finds("SGL220", "enable_hierarchical_cache", args={**ON, "disaggregation_mode": "decode"}, words="decode half"),
        finds("SGL220", "enable_hierarchical_cache", args={**ON, "enable_lmcache": True}),
        finds("SGL220", "enable_hierarchical_cache", args={**ON, "enable_unified_cache_external_linker": True}),
        finds("SGL221", "hicache_ratio", args={"hicache_ratio": 2, "hicache_size": 100}, words="1 more"),
        finds("SGL221", "hicache_storage_backend", args={"hicache_storage_backend": "mooncake"}, version="0.5.9"),
        finds("SGL222", "hicache_ratio", args={**ON, "hicache_ratio": 0.5}, version="0.5.14"),
        finds("SGL223", "hicache_ratio", args={**ON, "hicache_ratio": 0.5}, version="0.5.15"),
        finds("SGL225", "enable_lmcache", args={"enable_lmcache": True, "disable_radix_cache": True}),
        finds("SGL225", "enable_lmcache", args={"enable_lmcache": True, "speculative_algorithm": "EAGLE"}),
        finds("SGL225", "enable_lmcache", args={"enable_lmcache": True, "tp_size": 8, "attn_dp_size": 8}, words="DP"),
        finds("SGL225", "enable_lmcache", args={"enable_lmcache": True, "disaggregation_mode": "decode"}),
        finds(
            "SGL224",
            "hicache_host_memory_mode",
            args={**ON, "hicache_host_memory_mode": "buffer_only"},
            words="storage",
        ),
        finds(
            "SGL224",
            "hicache_host_memory_mode",
            args={
                **ON,
                "hicache_host_memory_mode": "buffer_only",
                "hicache_storage_backend": "file",
                "disaggregation_mode": "decode",
            },
            words="decode half",
        ),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL220", args=ON),
        passes("SGL220", args={"disable_radix_cache": True}),
        passes("SGL220", args={**ON, "disaggregation_mode": "prefill"}),
        passes(
            "SGL220", args={**ON, "disaggregation_mode": "decode", "disaggregation_decode_enable_radix_cache": True}
        ),
        passes("SGL220", args={**ON, "enable_lmcache": True}, version="0.5.20"),
        passes("SGL221", args={**ON, "hicache_ratio": 2}),
        passes("SGL221", args={"hicache_ratio": 2, "disaggregation_mode": "decode"}),
        passes("SGL221", args={"hicache_ratio": 2, "enable_lmcache": True}),
        passes("SGL221", args={}),
        passes("SGL222", args={**ON, "hicache_ratio": 1.0}, version="0.5.14"),
        passes("SGL222", args={**ON, "hicache_ratio": 0.5, "hicache_size": 200}, version="0.5.14"),
        passes("SGL222", args={**ON, "hicache_ratio": 0.5}),
        passes("SGL222", args={"hicache_ratio": 0.5}, version="0.5.14"),
        passes("SGL223", args={**ON, "hicache_ratio": 0.5, "hicache_host_memory_mode": "buffer_only"}),
        passes("SGL223", args={**ON, "hicache_ratio": 2.0}),
        passes("SGL223", args=ON),
        passes("SGL225", args={"enable_lmcache": True}),
        passes("SGL225", args={"enable_lmcache": True, "disable_radix_cache": True}, version="0.5.20"),
        passes("SGL225", args={"disable_radix_cache": True, "speculative_algorithm": "EAGLE"}),
        passes("SGL223", args={**ON, "hicache_ratio": 0.5}, version="0.5.14"),
        passes("SGL224", args={**ON, "hicache_host_memory_mode": "buffer_only", "hicache_storage_backend": "mooncake"}),
        passes("SGL224", args={**ON, "hicache_host_memory_mode": "cache"}),
        passes("SGL224", args={"hicache_host_memory_mode": "buffer_only"}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
