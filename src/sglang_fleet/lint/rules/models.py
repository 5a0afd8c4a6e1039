"""The model: where it comes from, what code it brings, and how its weights are quantized."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import is_on, is_repository

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

# Names of one and the same format of weights; a written name of another format is refused.
_FORMATS = {
    "fp8": "fp8", "awq": "awq", "awq_marlin": "awq", "gptq": "gptq", "gptq_marlin": "gptq",
    "compressed-tensors": "compressed-tensors", "mxfp4": "mxfp4",
}  # fmt: skip


@service_rule("SGL401", "note")
def model_revision_open(view: ServiceView) -> Iterator[Found]:
    """The model's revision is not pinned.

    Why: A model that is named by its repository is fetched at its newest revision. Weights, tokenizer, chat template
    and code may change between two hosts or two starts, and going back to an earlier release of this deployment does
    not bring the earlier model back. With trust_remote_code SGL702 says so, since that code runs.

    Evidence: sglang 0.5.23 arg_groups/fields/model.py: revision, "if unspecified, will use the default version".

    Fix: Set revision to the commit, or copy the model to a folder and name that.
    """
    if is_repository(view) and not view.written("revision") and view.value("trust_remote_code") is not True:
        yield view.found(
            "model_path",
            "is fetched at its newest revision: hosts and restarts may get different weights",
            "set revision to a commit, or name a folder on the host",
        )


@service_rule("SGL402", "warning")
def model_not_reachable(view: ServiceView) -> Iterator[Found]:
    """The model is on a hub, and the hub is switched off.

    Why: With HF_HUB_OFFLINE nothing is fetched, and each service has a cache of its own, which is empty at first. The
    server stops when the model is not there.

    Evidence: Hugging Face Hub's environment variables; the service's HF_HOME lies in its own state folder.

    Fix: Name a folder on the host in model_path, or remove the variable.
    """
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if is_repository(view) and is_on(view.environment.get(name)):
            yield view.found_at(
                f"environment.{name}",
                "keeps the server from fetching its model",
                "name a folder on the host as model_path, or remove it",
            )


@service_rule("SGL403", "note", needs="model")
def remote_code_unneeded(view: ServiceView) -> Iterator[Found]:
    """trust_remote_code is set, and the model has no code.

    Why: With trust_remote_code, Python files in the model's folder run as the server's user. Neither config.json nor
    the files of the tokenizer and the processors name any, so that the switch only opens a door, for the day another
    model lies there. It is said only where somebody has read all of these files.

    Evidence: Transformers: code is named by auto_map, in config.json, tokenizer_config.json, processor_config.json or
    preprocessor_config.json.

    Fix: Remove trust_remote_code, and see whether the server starts.
    """
    if view.model is not None and view.model.needs_remote_code is False and view.value("trust_remote_code") is True:
        yield view.found(
            "trust_remote_code",
            "lets code in the model's folder run, and none of its files names any",
            "remove it if the server starts without",
            edits=(view.remove("trust_remote_code"),),
        )


@service_rule("SGL404", "warning", needs="model")
def remote_code_missing(view: ServiceView) -> Iterator[Found]:
    """Kimi's tokenizer is code that comes with the model, and trust_remote_code is off.

    Why: Kimi models bring a tokenizer in a Python file of their own, which Transformers does not have. It refuses to
    load it without trust_remote_code, and the server does not start.

    Evidence: Kimi K2's tokenizer_config.json (auto_map: tokenization_kimi.TikTokenTokenizer); SGLang's instructions
    for Kimi, which set trust_remote_code. sglang 0.5.23 srt/utils/hf_transformers/tokenizer.py.

    Fix: Set trust_remote_code, and keep the model's folder read-only to the server.
    """
    model = view.model
    is_kimi = model is not None and bool(model.needs_remote_code) and (model.model_type or "").startswith("kimi")
    if is_kimi and view.value("trust_remote_code") is not True:
        yield view.found(
            "trust_remote_code",
            "is off, and Kimi's tokenizer is code in the model's folder",
            "set it to true",
            edits=(view.set("trust_remote_code", value=True),),
        )


@service_rule("SGL405", "error", needs="model")
def quantization_contradicts_model(view: ServiceView) -> Iterator[Found]:
    """The written quantization is not the model's.

    Why: The weights are what they are. SGLang compares quantization with the method in config.json and refuses another
    one, except those that it can convert while it loads.

    Evidence: sglang 0.5.9 to 0.5.23 srt/configs/model_config.py, _verify_quantization.

    Fix: Remove quantization: SGLang reads it from config.json.
    """
    own = view.model.quantization if view.model is not None else None
    written = view.value("quantization")
    if not isinstance(written, str) or own is None:
        return
    one, other = _FORMATS.get(written), _FORMATS.get(own)
    if one is not None and other is not None and one != other:
        yield view.found(
            "quantization",
            f"{written} is refused: the model's weights are {own}",
            "remove it: SGLang reads it from config.json",
            edits=(view.remove("quantization"),),
        )


@service_rule("SGL408", "warning", needs="model")
def quantization_of_no_model(view: ServiceView) -> Iterator[Found]:
    """A quantization is written, and the model has none.

    Why: awq and gptq say how weights were quantized before they were stored; nothing is quantized while loading.
    Without quantization_config in config.json SGLang looks for a file of its own (quantize_config.json, which only old
    models have), and stops: "Cannot find the config file". compressed-tensors needs quantization_config in any case.

    Evidence: sglang 0.5.5 to 0.5.23 srt/model_loader/weight_utils.py, get_quant_config; get_config_filenames in
    srt/layers/quantization.

    Fix: Name the quantized model, or remove quantization; fp8 quantizes while loading.
    """
    model, method = view.model, view.value("quantization")
    is_plain = model is not None and model.quantization is None and bool(model.architectures)
    if is_plain and method in ("awq", "awq_marlin", "gptq", "gptq_marlin", "compressed-tensors"):
        yield view.found(
            "quantization",
            f"{method} needs weights that were stored so, and config.json has no quantization_config",
            "name the quantized model as model_path, or remove quantization",
            edits=(view.remove("quantization"),),
        )


@service_rule("SGL406", "error")
def awq_needs_float16(view: ServiceView) -> Iterator[Found]:
    """AWQ's own kernels compute in float16 only.

    Why: With quantization awq SGLang uses the older AWQ kernels, which know float16, and refuses another dtype. The
    faster awq_marlin, which it chooses when quantization is left out, knows both.

    Evidence: sglang 0.5.9 to 0.5.23 srt/layers/quantization awq.py, get_supported_act_dtypes;
    srt/model_loader/loader.py.

    Fix: Remove quantization, or write dtype: half.
    """
    dtype = view.value("dtype")
    if view.value("quantization") == "awq" and dtype in ("bfloat16", "float", "float32"):
        yield view.found(
            "dtype", f"{dtype} is refused with quantization awq", "remove quantization, or write dtype: half"
        )


@service_rule("SGL407", "note")
def tools_without_grammar(view: ServiceView) -> Iterator[Found]:
    """Tools are served, and nothing can constrain the answers.

    Why: With grammar_backend none SGLang refuses every request that constrains its answer: json_schema, regex, and
    calls with tool_choice required or a named function. Tools that the model may use at will still work.

    Evidence: sglang 0.5.9 to 0.5.23 srt/constrained/grammar_manager.py: "not supported when the server is launched
    with --grammar-backend none".

    Fix: Remove grammar_backend: SGLang then takes xgrammar.
    """
    if view.value("grammar_backend") == "none" and view.value("tool_call_parser") is not None:
        yield view.found(
            "grammar_backend",
            "with none SGLang refuses tool_choice required and structured output; tool_call_parser is set",
            "remove it to get xgrammar",
            edits=(view.remove("grammar_backend"),),
        )
