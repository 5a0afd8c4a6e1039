"""How much memory a service needs, and how many tokens fit. Arithmetic only: it reads no file and asks no host.

SGLang 0.5.23 sets aside memory for weights and KV cache in `KVCacheConfigurator._profile_available_bytes`
(srt/mem_cache/kv_cache_configurator.py) and divides it by the bytes of a token in `DefaultPoolConfigurator`
(srt/model_executor/pool_configurator.py). The functions here name the part that they follow.
"""

from sglang_fleet.sizing.capacity import tokens
from sglang_fleet.sizing.layout import Layout, lay_out
from sglang_fleet.sizing.problems import CannotFit, problems
from sglang_fleet.sizing.result import Sizing, Stage, size

__all__ = ["CannotFit", "Layout", "Sizing", "Stage", "lay_out", "problems", "size", "tokens"]
