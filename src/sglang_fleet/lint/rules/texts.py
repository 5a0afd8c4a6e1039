"""Texts that SGLang reads otherwise than they look: paths that nobody expands, and JSON that is none."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import algorithm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

# Paths that no release expands: 0.5.5 to 0.5.23.
_PATHS = ("model_path", "tokenizer_path", "speculative_draft_model_path", "chat_template")
_FOR_A_SHELL = re.compile(r"~|(?:.*/)?\$[A-Za-z_{]", re.DOTALL)
_WHOLE = "write the whole path, from / on"


def _paths(view: ServiceView) -> Iterator[tuple[str, str]]:
    """The paths that are written, by the arguments that have them."""
    if view.value("load_format") != "expert_pack":
        for name in _PATHS:
            path = view.value(name)
            if isinstance(path, str) and view.written(name):
                yield name, path


def _is_read(view: ServiceView, name: str) -> bool:
    """Whether SGLang opens what the argument names, whatever the model."""
    if name == "tokenizer_path":
        return view.value("skip_tokenizer_init") is not True
    if name == "speculative_draft_model_path":
        return view.since("0.5.12") or algorithm(view) not in ("", "NGRAM")
    return True


@service_rule("SGL409", "error")
def path_not_expanded(view: ServiceView) -> Iterator[Found]:
    """A path is written for a shell, and there is none.

    Why: systemd starts the server without a shell, so that `~` and `$HOME` stay as they are: SGLang looks for a folder
    of that name, finds none, and takes the text for the name of a model on a hub, which it cannot be. It ends at its
    start; for a draft, until 0.5.11, only after it has loaded the weights of the model itself.

    Evidence: sglang 0.5.5 to 0.5.23 expand neither in these arguments, but for load_format expert_pack. 0.5.9 and
    0.5.23: "Repo id must be in the form", "Repo id must use alphanumeric chars" (model, tokenizer, draft), "is not a
    built-in template name" (chat_template). The unit writes `$` so that systemd does not expand it either.

    Fix: Write the whole path, from `/` on, as it is on the host.
    """
    for name, path in _paths(view):
        if _FOR_A_SHELL.match(path) and _is_read(view, name):
            what = f"{'~' if path.startswith('~') else '$'} is taken literally: no shell expands it"
            yield view.found(name, what, _WHOLE)


@service_rule("SGL411", "warning")
def path_below_working_directory(view: ServiceView) -> Iterator[Found]:
    """A path begins at the server's working directory.

    Why: A path that begins with `./` or `../` starts at the server's working directory, which is its own state folder
    unless working_directory is set. Where there is nothing at that place, SGLang takes the text for the name of a model
    on a hub and ends at its start.

    Evidence: sglang 0.5.9 and 0.5.23: "Repo id must be in the form", "Repo id must use alphanumeric chars".

    Fix: Write the whole path, from `/` on, as it is on the host.
    """
    if view.service.working_directory is not None:
        return
    for name, path in _paths(view):
        if path.startswith(("./", "../")) and not _FOR_A_SHELL.match(path):
            what = "starts at the server's working directory, which is its own state folder"
            yield view.found(name, what, _WHOLE)


def _always(_view: ServiceView) -> bool:
    return True


def _with_hierarchical_cache(view: ServiceView) -> bool:
    return view.value("enable_hierarchical_cache") is True or _with_offload(view)


def _with_offload(view: ServiceView) -> bool:
    return view.value("disaggregation_decode_enable_offload_kvcache") is True


def _with_sparse_attention(view: ServiceView) -> bool:
    return any(view.value(name) is True for name in ("enable_hisparse", "enable_hierarchical_sparse_attention"))


# Text to argparse, and JSON to SGLang later on; each with the question whether it is read at all.
_JSON: dict[str, Callable[[ServiceView], bool]] = {
    "json_model_override_args": _always,
    "model_loader_extra_config": _always,
    "preferred_sampling_params": _always,
    "modelexpress_config": _always,
    "kv_events_config": _always,
    "hicache_storage_backend_extra_config": _with_hierarchical_cache,
    "hisparse_config": _with_sparse_attention,
    "hierarchical_sparse_attention_extra_config": _with_sparse_attention,
}


def _names_a_file(view: ServiceView, name: str, text: str) -> bool:
    """Whether SGLang reads the JSON from a file."""
    is_able = name == "hicache_storage_backend_extra_config" and view.since("0.5.9") and not _with_offload(view)
    return is_able and text.startswith("@")


@service_rule("SGL410", "error")
def text_is_no_json(view: ServiceView) -> Iterator[Found]:
    """The text has to be JSON, and it is none.

    Why: SGLang's command line takes any text here. The server reads it as JSON later, some of it minutes later, and
    ends with an error that mostly does not name the argument. hicache_storage_backend_extra_config may name a file
    instead, with an @ before it, from 0.5.9 on.

    Evidence: sglang 0.5.5 to 0.5.23: srt/configs/model_config.py (json_model_override_args), load_config.py
    (model_loader_extra_config), srt/disaggregation/kv_events.py (kv_events_config), srt/mem_cache/hiradix_cache.py and
    hybrid_cache_controller.py (hicache_storage_backend_extra_config), sparsity/factory.py (hisparse_config);
    preferred_sampling_params until 0.5.6.post2; modelexpress_config from 0.5.10.

    Fix: Write it as a YAML mapping: it is turned into JSON for the command line. Or correct the text: names and texts
    in double quotes, no comma at the end.
    """
    for name, is_read in _JSON.items():
        if not view.written(name):
            continue
        text, argument = view.value(name), view.catalogue.find(name)
        if argument is not None and argument.name != name and argument.name in _JSON:
            continue  # an older name of another one here
        # Of kind json: argparse reads it, and the settings are refused already.
        if not isinstance(text, str) or argument is None or argument.kind == "json" or not is_read(view):
            continue
        if not text and name != "json_model_override_args":
            continue  # as if it were not there
        if _names_a_file(view, name, text):
            continue
        try:
            json.loads(text)
        except ValueError as error:
            where = f", from character {error.pos + 1} on" if isinstance(error, json.JSONDecodeError) else ""
            yield view.found(name, f"is no JSON{where}: SGLang ends when it reads it", "write it as a YAML mapping")
        except RecursionError:
            yield view.found(name, "is nested too deeply for JSON", "write it as a YAML mapping")
