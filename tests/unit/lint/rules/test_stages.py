from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

PARTITION = "SGLANG_PP_LAYER_PARTITION"
KIMI = ModelFacts(num_hidden_layers=61, num_attention_heads=64)


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL130", "enable_mixed_chunk", args={"pp_size": 2, "enable_mixed_chunk": True}, version="0.5.10"),
        finds("SGL130", "enable_pdmux", args={"pp_size": 2, "enable_pdmux": True}),
        finds("SGL130", "moe_dp_size", args={"pp_size": 2, "moe_dp_size": 2}),
        finds("SGL130", "elastic_ep_backend", args={"pp_size": 2, "elastic_ep_backend": "mooncake"}),
        finds("SGL130", "min_free_slots_delay", args={"pp_size": 2, "min_free_slots_delay": 4}),
        finds("SGL131", "speculative_algorithm", args={"pp_size": 2, "speculative_algorithm": "EAGLE"}),
        finds(
            "SGL131",
            "speculative_algorithm",
            args={"pp_size": 2, "speculative_algorithm": "EAGLE", "disaggregation_mode": "prefill"},
            version="0.5.20",
        ),
        finds(
            "SGL131",
            "speculative_algorithm",
            args={"pp_size": 2, "speculative_algorithm": "EAGLE3", "disaggregation_mode": "prefill"},
        ),
        finds("SGL132", f"environment.{PARTITION}", args={"pp_size": 4}, environment={PARTITION: "20,21"}),
        finds("SGL132", f"environment.{PARTITION}", args={"pp_size": 2}, environment={PARTITION: "20,many"}),
        finds("SGL136", "pp_size", args={"pp_size": 8}, model=ModelFacts(num_hidden_layers=4)),
        finds("SGL133", f"environment.{PARTITION}", args={"pp_size": 2}, environment={PARTITION: "30,30"}, model=KIMI),
        finds("SGL134", "pp_size", args={"pp_size": 4}, model=ModelFacts(num_hidden_layers=5), words="1 of 4 stages 2"),
        finds("SGL135", "pp_size", args={"pp_size": 8}, model=KIMI),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL130", args={"pp_size": 2, "elastic_ep_backend": "mooncake"}, version="0.5.10"),
        passes("SGL130", args={"pp_size": 2, "enable_mixed_chunk": True}, version="0.5.11"),
        passes("SGL130", args={"enable_pdmux": True, "moe_dp_size": 2, "tp_size": 2}),
        passes("SGL130", args={"pp_size": 2, "moe_dp_size": 1}),
        passes("SGL131", args={"pp_size": 2, "speculative_algorithm": "NEXTN", "disaggregation_mode": "prefill"}),
        passes(
            "SGL131",
            args={"pp_size": 2, "speculative_algorithm": "EAGLE"},
            environment={"SGLANG_ENABLE_PP_SPEC": "1"},
        ),
        passes("SGL131", args={"tp_size": 2, "speculative_algorithm": "EAGLE3"}),
        passes("SGL132", args={"pp_size": 2}, environment={PARTITION: "30,31"}),
        passes("SGL132", args={"tp_size": 2}, environment={PARTITION: "30"}),
        passes("SGL132", args={"pp_size": 2}),
        passes("SGL133", args={"pp_size": 2}, environment={PARTITION: "30,31"}, model=KIMI),
        passes("SGL133", args={"pp_size": 8}, model=KIMI),
        passes("SGL133", args={"pp_size": 8}),
        passes("SGL136", args={"pp_size": 8}, model=KIMI),
        passes("SGL136", args={"pp_size": 8}),
        passes("SGL134", args={"pp_size": 8}, model=KIMI),
        passes("SGL134", args={"pp_size": 4}, model=ModelFacts(num_hidden_layers=8)),
        passes(
            "SGL134", args={"pp_size": 4}, environment={PARTITION: "1,1,1,2"}, model=ModelFacts(num_hidden_layers=5)
        ),
        passes("SGL135", args={"pp_size": 8}),
        passes("SGL135", args={"pp_size": 3}, model=KIMI),
        passes("SGL135", args={"pp_size": 8, "device": "cpu"}, model=KIMI),
        passes("SGL135", args={"pp_size": 8}, nodes=2, model=KIMI),
        passes("SGL135", args={"pp_size": 4, "tp_size": 2}, model=KIMI),
        passes("SGL135", args={"pp_size": 8, "disaggregation_mode": "prefill"}, model=KIMI),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
