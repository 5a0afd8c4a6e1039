"""What took the place of arguments that went without a word, and what did the same before one was there."""

REPLACED = {
    # 0.5.5.post1, srt/server_args.py: the two are there with the same help, less `amx`.
    "kt_amx_method": "use `kt_method`",
    "kt_amx_weight_path": "use `kt_weight_path`",
    # 0.5.6.post1, srt/dllm/config.py reads `block_size` from the file of algorithm settings.
    "dllm_block_size": "write block_size in the file of `dllm_algorithm_config`",
    # 0.5.7, srt/server_args.py: `disable_flashinfer_autotune` is there instead, false by default.
    "enable_flashinfer_autotune": "remove it: tuning is on unless `disable_flashinfer_autotune` is set",
    # 0.5.10, srt/speculative/ngram_worker.py: the trie's depth takes the place of both, with 18 as its default.
    "speculative_ngram_branch_length": "use `speculative_ngram_max_trie_depth`",
    "speculative_ngram_max_match_window_size": "use `speculative_ngram_max_trie_depth`",
    # 0.5.11, srt/server_args.py: `enable_mis` turns multi-item scoring on; requests carry where their items end.
    "multi_item_scoring_delimiter": "use `enable_mis`",
    # 0.5.16, srt/server_args.py: the same, for more than DeepEP.
    "enable_deepep_waterfill": "use `enable_waterfill`",
    # 0.5.16, srt/disaggregation/prefill.py: the same limit under another name.
    "optimistic_prefill_retries": "use `optimistic_prefill_attempts`",
    # 0.5.22, srt/model_executor/cuda_graph_config.py: tc_piecewise, the backend that compiled, was removed.
    "cuda_graph_tc_compiler": "remove it: its backend, tc_piecewise, is gone too",
}
"""Where no release ever called them deprecated. By YAML key; the end of a sentence, with YAML keys in it."""

BEFORE = {
    # 0.5.22, srt/server_args.py makes attn_dp_size of the two.
    "attn_dp_size": "use `dp_size` with `enable_dp_attention`",
}
"""What to write where the release has the argument not yet. By YAML key; the end of a sentence."""
