"""How a model's weights are quantized, as its config.json says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Methods whose name says how wide a weight is.
_BITS = {
    "fp8": 8,
    "fbgemm_fp8": 8,
    "modelopt_fp8": 8,
    "modelopt_fp4": 4,
    "mxfp8": 8,
    "mxfp4": 4,
    "w8a8_int8": 8,
    "w8a8_fp8": 8,
    "w4afp8": 4,
    "petit_nvfp4": 4,
}
_LARGEST_BLOCK = 1 << 20
_LEFT_OUT = ("ignore", "ignored_layers", "exclude_modules", "modules_to_not_convert")


@dataclass(frozen=True, slots=True)
class Quantization:
    """How weights are quantized.

    Attributes:
        method: such as "fp8"; None: they are not, or it is not said.
        bits: the width of a quantized weight.
        group: weights that share one scale.
        block: rows and columns that share one scale, with FP8 in blocks.
        cache: the type of K and V that the weights were calibrated for.
        left_out: modules that are not quantized; a pattern starts with "re:".
    """

    method: str | None = None
    bits: int | None = None
    group: int | None = None
    cache: str | None = None
    left_out: tuple[str, ...] = ()
    block: tuple[int, int] | None = None


def described(text: Mapping[str, object], config: Mapping[str, object]) -> Quantization:
    """The quantization in config.json, in the language model's settings or at the top."""
    for settings in (config, text):
        for name in ("quantization_config", "compression_config"):
            found = settings.get(name)
            if isinstance(found, Mapping) and found:
                return _read(found, "compressed-tensors" if name == "compression_config" else None)
    return Quantization()


def _read(settings: Mapping[str, object], otherwise: str | None) -> Quantization:
    nested = settings.get("quantization")  # ModelOpt's own file has one level more
    if isinstance(nested, Mapping):
        settings = {**settings, **nested}
    method = settings.get("quant_method") or otherwise
    if method in (None, "modelopt"):
        method = _modelopt(settings)
    if not isinstance(method, str):
        return Quantization()
    cache = settings.get("kv_cache_quant_algo")
    return Quantization(
        method,
        _first(settings, ("bits", "w_bit"), "num_bits") or _BITS.get(method),
        _first(settings, ("group_size", "q_group_size"), "group_size"),
        cache if isinstance(cache, str) else None,
        _left_out(settings),
        _block(settings.get("weight_block_size")),
    )


def _modelopt(settings: Mapping[str, object]) -> str | None:
    """The method that SGLang takes for an algorithm of NVIDIA's ModelOpt (0.5.23, _parse_modelopt_quant_config)."""
    algorithm = settings.get("quant_algo")
    if not isinstance(algorithm, str):
        return None
    if algorithm == "MIXED_PRECISION":
        layers = settings.get("quantized_layers")
        kinds = [layer.get("quant_algo") for layer in _mappings(layers)]
        return "modelopt_mixed" if any("NVFP4" in str(kind).upper() for kind in kinds) else "w4afp8"
    return "modelopt_fp4" if "FP4" in algorithm else {"FP8": "modelopt_fp8", "MXFP8": "mxfp8"}.get(algorithm)


def _first(settings: Mapping[str, object], names: tuple[str, ...], name_in_group: str) -> int | None:
    """The first positive number under some names, or under one in the weights of a group of layers."""
    values = [settings.get(name) for name in names]
    for group in _mappings(settings.get("config_groups")):
        weights = group.get("weights")
        if isinstance(weights, Mapping):
            values.append(weights.get(name_in_group))
    return next((value for value in values if isinstance(value, int) and value is not True and value > 0), None)


def _block(value: object) -> tuple[int, int] | None:
    """`[128, 128]`, and nothing else: zero would be no block."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:  # noqa: PLR2004  # rows and columns
        return None
    rows, columns = value
    return (rows, columns) if all(type(size) is int and 0 < size < _LARGEST_BLOCK for size in value) else None


def _left_out(settings: Mapping[str, object]) -> tuple[str, ...]:
    for name in _LEFT_OUT:
        value = settings.get(name)
        if isinstance(value, (list, tuple)):
            return tuple(item for item in value if isinstance(item, str))
    return ()


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [item for item in value.values() if isinstance(item, Mapping)] if isinstance(value, Mapping) else []
