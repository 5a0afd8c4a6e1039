"""Runs in the Python that has SGLang itself: hands command lines to its own checks, up to where it would load a model.

Each line of stdin is a JSON object: the words, the environment and the GPU of one server. Each line of stdout says what
came of it: the error that ends the start, or the arguments as SGLang would use them. The first line has the version.

There is no GPU. SGLang is imported as on a CPU; then torch says what it would say beside GPUs, and every look at the
hardware that SGLang has remembered is forgotten. The checks are SGLang's own.
"""

import gc
import importlib
import json
import os
import pkgutil
import sys
import tempfile
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

GIBIBYTE = 2**30
CPU = ["--device", "cpu", "--attention-backend", "torch_native"]


def main() -> None:
    """Answer until stdin ends, each server in a process of its own: SGLang changes the environment, and keeps state."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    version = _imported(Path(sys.argv[1]))
    gc.freeze()  # or each process would copy what the collector looks at
    print(json.dumps(version), file=answers, flush=True)
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as answer:
            child = os.fork()
            if not child:
                json.dump(_outcome(**json.loads(line)), answer)
                answer.flush()
                os._exit(0)
            os.waitpid(child, 0)
            answer.seek(0)
            print(answer.read() or json.dumps({"refused": "the process died"}), file=answers, flush=True)


def _imported(model: Path) -> str:
    """Import what the checks import, as on a CPU: a first server is checked for that."""
    from sglang.version import __version__  # noqa: PLC0415 - after stdout is out of its reach

    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
    for name in ("arg_groups", "arg_groups.model_overrides"):
        try:
            package = importlib.import_module(f"sglang.srt.{name}")
        except ImportError:
            continue
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    _checked(["--model-path", str(model), *CPU])
    del os.environ["SGLANG_USE_CPU_ENGINE"]
    return str(__version__)


def _outcome(words: list[str], environment: dict[str, str], gpu: dict[str, Any]) -> dict[str, Any]:
    os.environ.update(environment)
    _pretend(gpu)
    try:
        return {"resolved": {name: _plain(value) for name, value in _checked(words).items()}}
    except SystemExit as end:
        return {"refused": f"exit {end.code}"}
    except Exception as error:  # noqa: BLE001 - whatever is raised ends the start
        place = traceback.extract_tb(error.__traceback__)[-1]
        return {"refused": f"{place.name}: {type(error).__name__}: {error}".strip()}


def _checked(words: list[str]) -> dict[str, Any]:
    """What SGLang does with its arguments before it starts schedulers."""
    from sglang.srt import server_args  # noqa: PLC0415 - as above
    from sglang.srt.configs.model_config import ModelConfig  # noqa: PLC0415 - as above

    settings = server_args.prepare_server_args(words)
    if hasattr(settings, "resolve_once"):
        settings.resolve_once()
    settings.check_server_args()
    ModelConfig.from_server_args(settings)
    _published(settings)
    return dict(settings.resolved_dict() if hasattr(settings, "resolved_dict") else vars(settings))


def _published(settings: Any) -> None:  # noqa: ANN401 - SGLang's own
    """What each scheduler of a newer release does before anything else: it cuts the GPUs into groups."""
    try:
        from sglang.srt.runtime_context import SpawnRanks, publish  # noqa: PLC0415 - as above
    except ImportError:
        return
    publish(settings, role="scheduler", ranks=SpawnRanks(world_rank=0, gpu_id=0))


def _pretend(gpu: dict[str, Any]) -> None:
    from sglang.srt.utils import common  # noqa: PLC0415 - as above

    torch = importlib.import_module("torch")
    major, minor = gpu["capability"]
    memory = gpu["memory_mib"] * 2**20
    seen = SimpleNamespace(
        name="NVIDIA GPU", total_memory=memory, major=major, minor=minor, multi_processor_count=132, warp_size=32
    )
    answers = {
        "is_available": True,
        "device_count": gpu["count"],
        "get_device_capability": (major, minor),
        "get_device_name": seen.name,
        "get_device_properties": seen,
        "mem_get_info": (memory - GIBIBYTE, memory),
        "current_device": 0,
    }
    for name, value in answers.items():
        setattr(torch.cuda, name, lambda *_, value=value, **__: value)
    torch.version.cuda = "13.0"
    common.get_nvgpu_memory_capacity = lambda *_: float(gpu["memory_mib"])
    for look in vars(common).values():
        if hasattr(look, "cache_clear"):
            look.cache_clear()


def _plain(value: object) -> object:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)
    return value


if __name__ == "__main__":
    main()
