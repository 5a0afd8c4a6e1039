"""In the place of SGLang's kernels, which are compiled for GPUs.

These are the names that 0.5.23 imports on a CPU as well, and in `kvcacheio` those of 0.5.9. No others: where a name is
missing, SGLang does without. Serving without speculative decoding calls none.
"""

_NAMES = frozenset({
    "assign_draft_cache_locs_contiguous_cpu",
    "assign_extend_cache_locs_cpu",
    "assign_req_to_token_pool_cpu",
    "build_tree_kernel_efficient_cpu",
    "copy_all_layer_kv_cache_cpu",
    "fill_accept_out_cache_loc_cpu",
    "fill_bonus_tokens_cpu",
    "verify_tree_greedy_cpu",
})  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _NAMES:
        raise AttributeError(name)

    def absent(*arguments: object, **settings: object) -> None:
        raise NotImplementedError(name)

    return absent
