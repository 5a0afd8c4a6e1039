"""What we say fits, against what a real server makes of the same memory."""

import json
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.models import read_facts
from sglang_fleet.sizing import lay_out, tokens
from sglang_fleet.sizing.kv_cache import Cache, cache
from tests.real import installed, tiny_model
from tests.real.conftest import Serve

GIB = 1 << 30
OBSERVING = Path(__file__).parent / "observing"
# A twentieth of the memory, so that any machine has it; and, in effect, no limit to the tokens.
ARGS: dict[str, object] = {"mem_fraction_static": 0.05, "max_total_tokens": 10**12}


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which servers of this test note the memory that they see."""
    own, file = installed.environment(), tmp_path / "seen"
    own |= {"PYTHONPATH": str(OBSERVING), "SEEN": str(file)}
    monkeypatch.setattr(installed, "environment", lambda: own)
    return file


@pytest.mark.parametrize(
    "more",
    [{"page_size": 16}, {"pp_size": 2}, {"page_size": 64, "max_total_tokens": 5000}],
    ids=["pages", "uneven stages", "a limit"],
)
def test_tokens_are_those_that_the_server_reports(
    real_server: Serve, tmp_path: Path, seen: Path, counts: list[str], more: dict[str, int]
) -> None:
    args = ARGS | more
    heads = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64}
    model = tiny_model.make(tmp_path / "model", num_hidden_layers=3, **heads)
    words = [word for name, value in args.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    with real_server(["--model-path", str(model), *words]) as server:
        info: dict[str, Any] = server.get("/server_info")
    reported, usage = info["max_total_num_tokens"], info["internal_states"][0]["memory_usage"]
    ranks = [json.loads(line) for line in seen.read_text().splitlines()]
    free, before = (int(min(rank[name] for rank in ranks) * GIB) for name in ("available", "before"))

    facts = read_facts(model)
    layout = lay_out(3, args)
    assert len(ranks) == layout.gpus
    assert tokens(free, before, facts, args) == pytest.approx(reported, abs=more.get("page_size", 1))
    cached = cache(facts, args, layout)
    assert isinstance(cached, Cache)
    assert cached.stages[0] * reported / GIB == pytest.approx(usage["kvcache"], abs=0.002)
    counts.append(f"sizing: {more}: {reported:,} tokens, {usage['kvcache']} GiB on the first rank, as computed")
