"""A model's folder → facts. Weights are never read, only their index, their headers and the sizes of their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglang_fleet.models.parsing import parse_facts

if TYPE_CHECKING:
    from pathlib import Path

    from sglang_fleet.models.facts import ModelFacts

INDEX = "model.safetensors.index.json"
_INDICES = (INDEX, "pytorch_model.bin.index.json")
# Where Transformers looks for the code of what is not the model itself.
_OTHERS = (
    "tokenizer_config.json",
    "processor_config.json",
    "preprocessor_config.json",
    "video_preprocessor_config.json",
)
_KINDS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
_LARGEST_JSON = 256 << 20  # bytes; the index of the largest models has a few tens of megabytes


class ModelUnreadable(ValueError):  # noqa: N818  # it names a state of the model, and is part of the interface
    """A model's folder does not say what it must."""

    def __init__(self, path: Path, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path}: {why}")


@dataclass(frozen=True, slots=True)
class WeightFiles:
    """The files that hold a model's weights.

    Attributes:
        total: bytes of all weights; None when neither an index nor the files say.
        names: the files' names, also of those that are not there.
        missing: those that the index names and the folder lacks.
    """

    total: int | None = None
    names: tuple[str, ...] = ()
    missing: tuple[str, ...] = field(default=())


def read_facts(folder: Path) -> ModelFacts:
    """The facts of the model in a folder. Only config.json must be there.

    Raises:
        ModelUnreadable: there is no config.json, or it is not a JSON object; the same for an index that is there.
    """
    config = _object(folder / "config.json")
    if not any(isinstance(config.get(name), Mapping) for name in ("quantization_config", "compression_config")):
        config = {**config, **_separate_quantization(folder)}
    files = weight_files(folder)
    return parse_facts(config, weight_bytes=files.total, shards=len(files.names), other_code=_has_other_code(folder))


def weight_files(folder: Path) -> WeightFiles:
    """Which files hold the weights: those of the index, else all of the first kind that there are.

    Raises:
        ModelUnreadable: an index is there and is no JSON object.
    """
    for name in _INDICES:
        if (folder / name).is_file():
            return _indexed(folder, _object(folder / name))
    for pattern in _KINDS:
        found = sorted(path for path in folder.glob(pattern) if path.is_file())
        # Mistral ships the same weights twice; SGLang takes those named model-….
        own = [path for path in found if not path.name.startswith("consolidated")] or found
        if own:
            return WeightFiles(sum(path.stat().st_size for path in own), tuple(path.name for path in own))
    return WeightFiles()


def _indexed(folder: Path, index: Mapping[str, object]) -> WeightFiles:
    where, metadata = index.get("weight_map"), index.get("metadata")
    names = sorted({name for name in where.values() if isinstance(name, str)}) if isinstance(where, Mapping) else []
    missing = tuple(name for name in names if not (folder / name).is_file())
    total = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    if isinstance(total, float) and total.is_integer():
        total = int(total)  # some tools write it so
    if not isinstance(total, int) or isinstance(total, bool) or total <= 0:
        total = None if missing or not names else sum((folder / name).stat().st_size for name in names)
    return WeightFiles(total, tuple(names), missing)


def _separate_quantization(folder: Path) -> dict[str, object]:
    """What ModelOpt writes beside config.json."""
    path = folder / "hf_quant_config.json"
    return {"quantization_config": _object(path)} if path.is_file() else {}


def _has_other_code(folder: Path) -> bool | None:
    """Whether the tokenizer or a processor brings code; None when one of their files cannot be read."""
    try:
        found = [_object(folder / name) for name in _OTHERS if (folder / name).is_file()]
    except ModelUnreadable:
        return None
    return any(settings.get("auto_map") for settings in found)


def _object(path: Path) -> Mapping[str, object]:
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise ModelUnreadable(path, "is far larger than such a file can be")
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ModelUnreadable(path, "is not there") from None
    except OSError as error:
        raise ModelUnreadable(path, error.strerror or "cannot be read") from None
    except (ValueError, RecursionError):
        raise ModelUnreadable(path, "is not JSON") from None
    if not isinstance(found, Mapping):
        raise ModelUnreadable(path, "is not a JSON object")
    return found
