"""What each endpoint answers, in the shapes of 0.5.23."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .state import State

_OK = 200
_VOCABULARY = ("the", "pipeline", "keeps", "every", "stage", "busy", "and", "so", "on")


@dataclass
class Answer:
    """One HTTP answer: JSON, or text when `body` is a string, or a stream of events."""

    status: int
    body: object = ""
    events: Iterator[object] | None = None
    content_type: str = "application/json"


@dataclass
class Tokens:
    """What one completion came to."""

    prompt: int
    words: list[str]

    @property
    def text(self) -> str:
        """The completion's text."""
        return "".join(f" {word}" for word in self.words)


def ready(state: State, _: dict[str, Any]) -> Answer:
    """503 while starting and while draining; never generates."""
    if state.stopping.is_set():
        return Answer(503)
    return Answer(200 if state.faults.get("dead_scheduler") or state.well() else 503)


def health(state: State, _: dict[str, Any]) -> Answer:
    """As `ready`; the real one generates a token for it."""
    answer = ready(state, _)
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


def generate(state: State, body: dict[str, Any]) -> Answer:
    """SGLang's own completion endpoint."""
    limit = int((body.get("sampling_params") or {}).get("max_new_tokens", 128))
    prompt = str(body.get("text", "")).split() or list(body.get("input_ids") or [])
    identity, begun = uuid.uuid4().hex, time.monotonic()

    def shape(tokens: Tokens) -> object:
        return {
            "text": tokens.text,
            "output_ids": list(range(len(tokens.words))),
            "meta_info": {
                "id": identity,
                "finish_reason": {"type": "length", "length": limit},
                "prompt_tokens": tokens.prompt,
                "weight_version": state.arguments["weight_version"],
                "num_retractions": 0,
                "completion_tokens": len(tokens.words),
                "cached_tokens": 0,
                "e2e_latency": time.monotonic() - begun,
            },
        }

    return _completed(state, prompt=len(prompt), limit=limit, stream=bool(body.get("stream")), shape=shape)


def completions(state: State, body: dict[str, Any]) -> Answer:
    """OpenAI's text completion."""
    return _openai(state, body, prompt=str(body.get("prompt", "")), chat=False)


def chat_completions(state: State, body: dict[str, Any]) -> Answer:
    """OpenAI's chat completion."""
    prompt = " ".join(str(message.get("content", "")) for message in body.get("messages") or [])
    return _openai(state, body, prompt=prompt, chat=True)


def _openai(state: State, body: dict[str, Any], *, prompt: str, chat: bool) -> Answer:
    limit = int(body.get("max_completion_tokens") or body.get("max_tokens") or 16)
    stream = bool(body.get("stream"))
    head = {
        "id": uuid.uuid4().hex,
        "object": ("chat.completion" if chat else "text_completion") + (".chunk" if chat and stream else ""),
        "created": int(time.time()),
        "model": body.get("model") or state.model_name,
    }

    def shape(tokens: Tokens) -> object:
        count = len(tokens.words)
        # Streamed, an event holds the new text only (unlike those of /generate).
        new = f" {tokens.words[-1]}" if stream else tokens.text
        message = {"role": "assistant", "content": new if stream else new.strip()}
        text = {"delta" if stream else "message": message} if chat else {"text": new}
        choice = {"index": 0, **text, "logprobs": None, "finish_reason": "length", "matched_stop": None}
        usage = {
            "prompt_tokens": tokens.prompt,
            "completion_tokens": count,
            "total_tokens": tokens.prompt + count,
        }
        return {**head, "choices": [choice], "usage": {**usage, "prompt_tokens_details": None}}

    return _completed(state, prompt=len(prompt.split()), limit=limit, stream=stream, shape=shape)


def _completed(state: State, *, prompt: int, limit: int, stream: bool, shape: Callable[[Tokens], object]) -> Answer:
    """Generate, which takes its time; streamed, every word is an event, as SGLang counts up."""
    if not state.well() and not state.faults.get("dead_scheduler"):
        return Answer(503, {"object": "error", "message": "Service unavailable", "code": 503})
    steps = _steps(state, prompt=prompt, limit=limit)
    if stream:
        return Answer(200, events=(shape(tokens) for tokens in steps))
    last = Tokens(prompt, [])
    for tokens in steps:
        last = tokens
    return Answer(200, shape(last))


def _steps(state: State, *, prompt: int, limit: int) -> Iterator[Tokens]:
    hangs = state.begin()
    words: list[str] = []
    try:
        while hangs:
            time.sleep(3600)
        if not state.faults.get("empty_completion"):
            for number in range(limit):
                time.sleep(float(state.faults.get("token_seconds")))
                words.append(_VOCABULARY[number % len(_VOCABULARY)])
                yield Tokens(prompt, words)
    finally:
        state.count(prompt_tokens=prompt, generation_tokens=len(words))


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


def allowed(state: State, *, path: str, authorization: str) -> bool:
    """The API key rule of srt/utils/auth.py: health, readiness and metrics stay open."""
    key = state.arguments["api_key"]
    if not key or path.startswith(("/health", "/ready", "/metrics")):
        return True
    scheme, _, token = authorization.partition(" ")
    return scheme.lower() == "bearer" and token == key


def answer(state: State, *, method: str, path: str, authorization: str, body: bytes) -> Answer:
    """The answer to one request."""
    if not allowed(state, path=path, authorization=authorization):
        return Answer(401, {"error": "Unauthorized"})
    route = ROUTES.get((method, path))
    if route is None:
        known = any(path == other for _, other in ROUTES)
        return Answer(405, {"detail": "Method Not Allowed"}) if known else Answer(404, {"detail": "Not Found"})
    try:
        data = json.loads(body) if body else {}
    except ValueError:
        return Answer(400, {"detail": "Invalid JSON"})
    return route(state, data if isinstance(data, dict) else {})
