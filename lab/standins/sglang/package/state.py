"""What a running server knows: its arguments, its phase, what it has done."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .faults import Faults
    from .ranks import Ranks


class State:
    """One server's state, shared by its threads."""

    def __init__(self, *, arguments: dict[str, Any], words: list[str], faults: Faults, ranks: Ranks) -> None:
        self.ranks = ranks
        self.arguments = arguments
        self.words = words
        self.faults = faults
        self.started = time.monotonic()
        self.listening_since: float | None = None
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.in_flight = 0
        self.completions = 0
        self.prompt_tokens = 0
        self.generation_tokens = 0

    @property
    def model_name(self) -> str:
        """The name the model is served under."""
        return str(self.arguments["served_model_name"] or self.arguments["model_path"])

    def well(self) -> bool:
        """Whether the server takes requests: loaded, and not in the bad half of `flapping`."""
        if self.listening_since is None:
            return False
        age = time.monotonic() - self.listening_since - float(self.faults.get("health_503_for"))
        period = self.faults.get("flapping")
        return age >= 0 and not (period and int(age / float(period)) % 2)

    def enter(self) -> None:
        """One more request that a drain waits for."""
        with self.lock:
            self.in_flight += 1

    def leave(self) -> None:
        """Its answer is sent."""
        with self.lock:
            self.in_flight -= 1

    def begin(self) -> bool:
        """Count a completion; whether it is one that never ends."""
        with self.lock:
            self.completions += 1
            limit = self.faults.get("hang_after")
            dead = bool(self.faults.get("dead_scheduler")) or not self.ranks.complete
            return dead or (limit is not None and self.completions > limit)

    def count(self, *, prompt_tokens: int, generation_tokens: int) -> None:
        """Count what a completion took."""
        if self.faults.get("counters_stuck"):
            return
        with self.lock:
            self.prompt_tokens += prompt_tokens
            self.generation_tokens += generation_tokens

    def graph_backends(self) -> dict[str, dict[str, str]]:
        """Which CUDA graphs would run, as `/server_info` answers it (not in `disable_cuda_graph`)."""
        values = self.arguments
        given = values["cuda_graph_config"] or {}
        no_graphs = values["attention_backend"] in ("torch_native", "flex_attention")
        backends = {}
        for phase, usual in (("decode", "full"), ("prefill", "breakable")):
            asked = given.get(phase, {}).get("backend", usual)
            chosen = values[f"cuda_graph_backend_{phase}"] or asked
            pipelined = phase == "prefill" and values["pp_size"] > 1
            off = values["disable_cuda_graph"] or no_graphs or pipelined
            backends[phase] = {"backend": "disabled" if off else chosen}
        return backends
