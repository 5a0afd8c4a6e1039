"""Paths that nobody expands, and JSON that is none."""

from typing import Any

import pytest

from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

BROKEN = '{"bad'
HICACHE = "hicache_storage_backend_extra_config"
HIERARCHICAL = {"enable_hierarchical_cache": True}
DRAFT = "speculative_draft_model_path"
EAGLE = {"speculative_algorithm": "EAGLE"}
OFFLOAD = {"disaggregation_decode_enable_offload_kvcache": True}


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL409", "model_path", args={"model_path": "~/models/x"}, words="~ is taken literally"),
        finds("SGL409", "model_path", args={"model_path": "$HOME/models/x"}, words="$ is taken literally"),
        finds("SGL409", "model_path", args={"model_path": "/srv/${MODEL}"}, words="$ is taken literally"),
        finds("SGL409", "model_path", args={"model_path": "~/x"}),
        finds("SGL409", "tokenizer_path", args={"tokenizer_path": "~/x"}),
        finds("SGL409", "chat_template", args={"chat_template": "$HOME/kimi.jinja"}),
        finds("SGL409", DRAFT, args={DRAFT: "~/x", **EAGLE}),
        finds("SGL409", DRAFT, args={DRAFT: "~/x", **EAGLE}, version="0.5.9"),
        finds("SGL409", DRAFT, args={DRAFT: "~/x"}),
        finds("SGL411", "model_path", args={"model_path": "./models/x"}, words="starts at the server's working"),
        finds("SGL411", "model_path", args={"model_path": "../x"}),
        finds("SGL411", "chat_template", args={"chat_template": "./kimi.jinja"}),
        finds("SGL409", "extra_args", extra_args=["--chat-template=~/x"], words="--chat-template: ~ is"),
        finds("SGL410", "json_model_override_args", args={"json_model_override_args": BROKEN}, words="character 2 on"),
        finds("SGL410", "json_model_override_args", args={"json_model_override_args": "{'a': 1}"}),
        finds("SGL410", "json_model_override_args", args={"json_model_override_args": ""}),
        finds("SGL410", "model_loader_extra_config", args={"model_loader_extra_config": "a=b"}, version="0.5.5"),
        finds("SGL410", "kv_events_config", args={"kv_events_config": BROKEN}),
        finds("SGL410", "preferred_sampling_params", args={"preferred_sampling_params": BROKEN}, version="0.5.6"),
        finds("SGL410", HICACHE, args={HICACHE: BROKEN, **HIERARCHICAL}),
        finds("SGL410", HICACHE, args={HICACHE: "@/etc/x.json", **HIERARCHICAL}, version="0.5.8"),
        finds("SGL410", HICACHE, args={HICACHE: "@/etc/x.json", **OFFLOAD}),
        finds("SGL410", "hisparse_config", args={"hisparse_config": BROKEN, "enable_hisparse": True}),
        finds("SGL410", "json_model_override_args", args={"json_model_override_args": "[" * 100_000}, words="deep"),
    ],
)  # fmt: skip
def test_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    if key == "extra_args":
        (found,) = ask(rule, view(**settings))
        assert found.key == "services.k26.extra_args"
        assert words in found.message
    else:
        assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL409"),
        passes("SGL409", args={"model_path": "models/x"}),  # a name on a hub
        passes("SGL409", args={"model_path": "/srv/~old/a$b"}),
        passes("SGL409", args={"model_path": "./models/x"}),
        passes("SGL409", args={"tokenizer_path": "~/x", "skip_tokenizer_init": True}),
        passes("SGL409", args={DRAFT: "~/x"}, version="0.5.9"),
        passes("SGL409", args={DRAFT: "~/x", "speculative_algorithm": "NGRAM"}, version="0.5.11"),
        passes("SGL411", args={"model_path": "./models/x"}, working_directory="/srv"),
        passes("SGL411", args={"model_path": "../$MODEL"}),  # SGL409 says it
        passes("SGL411", args={"model_path": "./x", "load_format": "expert_pack"}),
        passes("SGL409", args={"model_path": "~/x", "load_format": "expert_pack"}),
        passes("SGL409", args={"chat_template": "chatml"}),
        passes("SGL410"),
        passes("SGL410", args={"json_model_override_args": '{"a": 1}'}),
        passes("SGL410", args={"json_model_override_args": {"a": 1}}),
        passes("SGL410", args={"model_loader_extra_config": ""}),
        passes("SGL410", args={HICACHE: BROKEN}),  # never read
        passes("SGL410", args={HICACHE: "@/etc/x.json", **HIERARCHICAL}),
        passes("SGL410", args={"hisparse_config": BROKEN}),
        passes("SGL410", args={"preferred_sampling_params": BROKEN}),  # argparse reads it: SGL001
        passes("SGL410", args={"deepep_config": "/etc/deepep.json"}),
    ],
)  # fmt: skip
def test_passes(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))


@pytest.mark.parametrize("path", ["~/models", "$HOME/models", "./models", "../models"])
@pytest.mark.parametrize("rule", ["SGL401", "SGL402", "SGL702"])
def test_a_path_is_no_name_on_a_hub(rule: str, path: str) -> None:
    args = {"model_path": path, "trust_remote_code": rule == "SGL702"}
    assert not ask(rule, view(args, environment={"HF_HUB_OFFLINE": "1"}))
