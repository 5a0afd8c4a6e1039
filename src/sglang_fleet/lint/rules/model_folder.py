"""The model's folder on the host."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import host_rule
from sglang_fleet.observe import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import HostView


@cache  # many hosts have the same model
def config_object(text: str) -> Mapping[str, object] | None:
    """What a config.json says; None where it is not a JSON object."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return config if isinstance(config, dict) else None


@host_rule("SGL820", "note")
def model_without_index(view: HostView) -> Iterator[Found]:
    """Nothing tells whether the model is whole.

    Why: The index (model.safetensors.index.json) names every shard. Without it a missing one is not missed before
    SGLang fails to load it. A model in one file needs none.

    Evidence: The model's folder on the host.

    Fix: Copy the index with the model.
    """
    for name, service in view.deployment.services.items():
        model = view.state.models.get(service.args.model_path)
        if model is None or isinstance(model, Unknown) or not model.directory or model.index:
            continue
        what = "no safetensors index" if model.bytes else "no safetensors"
        yield view.found(
            f"services.{name}.args.model_path",
            f"{service.args.model_path} has {what}: nothing tells whether it is whole",
            "copy model.safetensors.index.json with the model, if it has more than one file",
        )


@host_rule("SGL821", "warning")
def model_without_config(view: HostView) -> Iterator[Found]:
    """The model's folder has no config.json.

    Why: SGLang reads from it which model this is, and ends without it for all but a few formats (GGUF files, Mistral's
    own params.json). Mostly the folder above or below is meant, or the download was cut off.

    Evidence: sglang 0.5.23, srt/utils/hf_transformers; the model's folder on the host.

    Fix: Correct model_path, or download the model again.
    """
    for name, service in view.deployment.services.items():
        model = view.state.models.get(service.args.model_path)
        if model is not None and not isinstance(model, Unknown) and model.directory and model.config is None:
            yield view.found(
                f"services.{name}.args.model_path",
                f"{service.args.model_path} has no config.json, which SGLang needs",
                "correct model_path, or download the model again",
            )
