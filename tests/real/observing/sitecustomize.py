"""Python runs this at its start: a note of the memory that a server sees, in the file that SEEN names.

A server logs it with two digits and some seconds too early; sizes are compared to the token.
"""

import importlib.util
import json
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

WATCHED = "sglang.srt.mem_cache.kv_cache_configurator"


def _note(module: ModuleType) -> None:
    """Let the functions that measure memory write down what they measured."""
    measured: list[float] = []
    measure, profile = module.get_available_gpu_memory, module.KVCacheConfigurator._profile_available_bytes  # noqa: SLF001  # that is what is watched

    def measuring(*args: Any, **kwargs: Any) -> float:
        measured.append(measure(*args, **kwargs))
        return measured[-1]

    def profiling(configurator: object, before: float) -> int:
        found: int = profile(configurator, before)
        with Path(os.environ["SEEN"]).open("a") as file:
            file.write(json.dumps({"before": before, "available": measured[-1], "rest": found}) + "\n")
        return found

    vars(module)["get_available_gpu_memory"] = measuring
    module.KVCacheConfigurator._profile_available_bytes = profiling  # noqa: SLF001  # as above


class _Watching(Loader):
    def __init__(self, own: Loader) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        _note(module)


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002  # Python calls it so
        if fullname != WATCHED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None
        assert spec.loader is not None
        spec.loader = _Watching(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())
