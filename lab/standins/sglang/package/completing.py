"""Completions, in the shapes of 0.5.23: words out of a small vocabulary, one a token."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .reply import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .state import State

_OTHER_VOCABULARY = ("!", "?", "%")
_VOCABULARY = ("the", "pipeline", "keeps", "every", "stage", "busy", "and", "so", "on")


@dataclass
class Tokens:
    """What one completion came to."""

    prompt: int
    words: list[str]

    @property
    def text(self) -> str:
        """The completion's text."""
        return "".join(f" {word}" for word in self.words)


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
            vocabulary = _OTHER_VOCABULARY if state.faults.get("other_answers") else _VOCABULARY
            for number in range(limit + int(state.faults.get("max_tokens_ignored") or 0)):
                time.sleep(float(state.faults.get("token_seconds")))
                words.append(vocabulary[number % len(vocabulary)])
                yield Tokens(prompt, words)
    finally:
        state.count(prompt_tokens=prompt, generation_tokens=len(words))
