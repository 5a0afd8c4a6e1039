"""What each endpoint answers, in the shapes of 0.5.23."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from . import _version
from .completing import chat_completions, completions, generate
from .reply import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from .state import State

_OK = 200


def ready(state: State, _: dict[str, Any]) -> Answer:
    """503 while starting and while draining; never generates."""
    if state.stopping.is_set() or state.faults.get("health_503_while_serving"):
        return Answer(503)
    return Answer(200 if state.faults.get("dead_scheduler") or state.well() else 503)


def health(state: State, _: dict[str, Any]) -> Answer:
    """As `ready`; the real one generates a token for it, so it needs every rank."""
    answer = ready(state, _)
    if not state.ranks.complete:
        return Answer(503)
    if answer.status == _OK:
        time.sleep(float(state.faults.get("health_seconds")))
    return answer


def models(state: State, _: dict[str, Any]) -> Answer:
    """The one model there is."""
    card = {
        "id": state.model_name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "sglang",
        "root": state.model_name,
        "parent": None,
        "max_model_len": state.arguments["context_length"] or 32768,
    }
    return Answer(200, {"object": "list", "data": [card]})


def model_info(state: State, _: dict[str, Any]) -> Answer:
    """What is served."""
    keys = (
        "model_path",
        "tokenizer_path",
        "weight_version",
        "load_format",
        "reasoning_parser",
        "tool_call_parser",
    )
    chosen = {key: state.arguments[key] for key in keys}
    return Answer(200, {**chosen, "served_model_name": state.model_name, "is_generation": True})


def server_info(state: State, _: dict[str, Any]) -> Answer:
    """The effective arguments; the keys are in it, as in the real one's answer."""
    effective = {
        **state.arguments,
        "served_model_name": state.model_name,
        "cuda_graph_config": state.graph_backends(),
        "launch_command": " ".join(state.words),
        "internal_states": [{"last_gen_throughput": 0.0}],
        "version": _version.__version__,
        "frontend": "python",
        "standin_marker": _version.MARKER,
        **(state.faults.get("wrong_arguments") or {}),
    }
    return Answer(200, effective)


def metrics(state: State, _: dict[str, Any]) -> Answer:
    """Prometheus text, with `--enable-metrics` only."""
    if not state.arguments["enable_metrics"]:
        return Answer(404, {"detail": "Not Found"})
    graphs = int(state.graph_backends()["decode"]["backend"] != "disabled")
    values = {
        "num_running_reqs": ("gauge", state.in_flight),
        "num_queue_reqs": ("gauge", 0),
        "token_usage": ("gauge", 0.0),
        "gen_throughput": ("gauge", 0.0),
        "is_cuda_graph": ("gauge", graphs),
        "max_total_num_tokens": ("gauge", state.arguments["max_total_tokens"] or 262144),
        "http_requests_active": ("gauge", state.in_flight),
        "num_requests_total": ("counter", state.completions),
        "prompt_tokens_total": ("counter", state.prompt_tokens),
        "generation_tokens_total": ("counter", state.generation_tokens),
    }
    label = f'{{engine_type="unified",model_name="{state.model_name}",pp_rank="0",tp_rank="0"}}'
    lines = [f"# TYPE sglang:{name} {kind}\nsglang:{name}{label} {value}\n" for name, (kind, value) in values.items()]
    return Answer(200, "".join(lines), content_type="text/plain; version=0.0.4; charset=utf-8")


ROUTES: dict[tuple[str, str], Callable[[State, dict[str, Any]], Answer]] = {
    ("GET", "/health"): health,
    ("GET", "/health_generate"): health,
    ("GET", "/ready"): ready,
    ("GET", "/v1/models"): models,
    ("GET", "/model_info"): model_info,
    ("GET", "/get_model_info"): model_info,
    ("GET", "/server_info"): server_info,
    ("GET", "/get_server_info"): server_info,
    ("GET", "/metrics"): metrics,
    ("POST", "/generate"): generate,
    ("POST", "/v1/completions"): completions,
    ("POST", "/v1/chat/completions"): chat_completions,
}


SMALL_ROUTES = ("/ping", "/health", "/health_generate")
"""All that ranks above 0 know (srt/utils/common.py: launch_dummy_health_check_server): always 200, and no key."""


def allowed(state: State, *, path: str, authorization: str) -> bool:
    """The API key rule of srt/utils/auth.py: health, readiness and metrics stay open."""
    key = state.arguments["api_key"]
    if not key or path.startswith(("/health", "/ready", "/metrics")):
        return True
    scheme, _, token = authorization.partition(" ")
    return scheme.lower() == "bearer" and token == key


def answer(state: State, *, method: str, path: str, authorization: str, body: bytes) -> Answer:
    """The answer to one request."""
    if state.ranks.rank:
        return Answer(200) if (method, path) in {("GET", known) for known in SMALL_ROUTES} else _not_found()
    if not allowed(state, path=path, authorization=authorization):
        return Answer(401, {"error": "Unauthorized"})
    route = ROUTES.get((method, path))
    if route is None:
        known = any(path == other for _, other in ROUTES)
        return Answer(405, {"detail": "Method Not Allowed"}) if known else _not_found()
    try:
        data = json.loads(body) if body else {}
    except ValueError:
        return Answer(400, {"detail": "Invalid JSON"})
    return route(state, data if isinstance(data, dict) else {})


def _not_found() -> Answer:
    return Answer(404, {"detail": "Not Found"})
