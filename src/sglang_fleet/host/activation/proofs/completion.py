"""The known question: a completion at every address, whose tokens are counted and no more than were asked for."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...machine.answers import ANSWERED, COMPLETION_TIMEOUT, REFUTED, SILENT, WRONG, Answer, Proof
from ...machine.client import ASKS_FOR_A_KEY, OK, UNAVAILABLE, NoAnswerError

if TYPE_CHECKING:
    from ...machine.answers import Question
    from ...machine.client import Client, Reply

TEXT = "The capital of France is"
TOKENS = 4

BUSY = (UNAVAILABLE, 429)
"""Statuses that say that the queue is full."""


class CompletionError(Exception):
    """A completion that is not to be believed; `answer` says how. `busy`: the server has no place for it now."""

    def __init__(self, answer: Answer, *, busy: bool = False) -> None:
        super().__init__(answer.text)
        self.answer = answer
        self.busy = busy


@dataclass(frozen=True)
class Completed:
    """One completion. `tokens` is None where the server counts none (old ones)."""

    text: str
    tokens: int | None


@dataclass(frozen=True)
class Completion(Proof):
    """The first proof, and the one at the end of the soak.

    Attributes:
        obeyed: whether more tokens than were asked for end the start.
    """

    obeyed: bool = False

    def __call__(self, question: Question) -> Answer:
        """Ask at each address in turn; the time is for all of them: what is slow is the first completion ever."""
        answer = Answer(WRONG, "there is no address to ask")
        until = time.monotonic() + self.seconds
        for client in question.clients:
            bounded = replace(client, until=until)
            at = f" at {client.host}" if len(question.clients) > 1 or question.leader else ""
            answer = (
                _embedding(bounded, question, at)
                if question.probe == "embedding"
                else _text(bounded, question, at, obeyed=self.obeyed)
            )
            if not answer.good:
                return answer
        return answer


def prompt(question: Question, text: str = TEXT) -> dict[str, Any]:
    """Return the part of a request to /generate that holds the prompt."""
    return {"input_ids": [0]} if question.tokenized else {"text": text}


def complete(
    client: Client,
    question: Question,
    *,
    tokens: int,
    timeout: float,
    text: str = TEXT,
    exactly: bool = False,
    obeyed: bool = False,
) -> Completed:
    """Return a greedy completion.

    Args:
        client: at which address.
        question: who asks.
        tokens: so many at most.
        timeout: seconds.
        text: the prompt, where the server takes text.
        exactly: so many tokens and no fewer: the model's own end is ignored.
        obeyed: whether another number of tokens is the opposite of what is wanted.

    Raises:
        CompletionError: there is none, or it is not what was asked for.
    """
    sampling = {"max_new_tokens": tokens, "temperature": 0, **({"ignore_eos": True} if exactly else {})}
    try:
        reply = client.post("/generate", {**prompt(question, text), "sampling_params": sampling}, timeout=timeout)
    except NoAnswerError as error:
        what = "a completion " if error.late else "a completion failed: "
        raise CompletionError(Answer(SILENT, f"200, but {what}{error}")) from None
    if reply.status != OK:
        raise CompletionError(_status(reply, question, "/generate"), busy=reply.status in BUSY)
    value = reply.json()
    wrong = judge_completion(value)
    if wrong:
        raise CompletionError(Answer(WRONG, f"200, but /generate answers {wrong}"))
    done = _completed(value)
    if obeyed and done.tokens is not None and (done.tokens > tokens or (exactly and done.tokens != tokens)):
        asked = f"{'exactly' if exactly else 'at most'} {tokens}"
        raise CompletionError(Answer(REFUTED, f"does not obey max_new_tokens: asked for {asked}, got {done.tokens}"))
    return done


def judge_completion(answer: Any) -> str:  # noqa: ANN401 - any JSON
    """Return what is wrong with the answer of /generate; "" when it holds at least one token."""
    entry = _entry(answer)
    if entry is None:
        return "no completion" if answer is not None else "something that is not JSON"
    tokens = _tokens(entry)
    if tokens is not None:
        return "" if tokens >= 1 else "a completion without a token"
    return "" if entry.get("text") else "an empty completion"


def judge_embedding(answer: Any) -> str:  # noqa: ANN401 - any JSON
    """Return what is wrong with the answer of /v1/embeddings; "" when it holds a vector."""
    try:
        vector = answer["data"][0]["embedding"]
    except (KeyError, IndexError, TypeError):
        return "no embedding"
    return "" if isinstance(vector, list) and vector else "an empty embedding"


def _text(client: Client, question: Question, at: str, *, obeyed: bool) -> Answer:
    try:
        done = complete(client, question, tokens=TOKENS, timeout=client_time(client), obeyed=obeyed)
    except CompletionError as error:
        return _placed(error.answer, at)
    counted = "" if done.tokens is None else f": {done.tokens} of at most {TOKENS} tokens"
    return Answer(ANSWERED, f"answered a completion{at}{counted}")


def _embedding(client: Client, question: Question, at: str) -> Answer:
    try:
        reply = client.post("/v1/embeddings", {"model": question.model, "input": TEXT}, timeout=client_time(client))
    except NoAnswerError as error:
        return Answer(SILENT, f"200, but an embedding{at} {error}")
    if reply.status != OK:
        return _placed(_status(reply, question, "/v1/embeddings"), at)
    wrong = judge_embedding(reply.json())
    if wrong:
        return _placed(Answer(WRONG, f"200, but /v1/embeddings answers {wrong}"), at)
    return Answer(ANSWERED, f"answered an embedding{at}")


def share(value: float) -> str:
    """Return a share as it is told: rounded down, so that one which falls short never looks as if it did not."""
    return f"{math.floor(value * 100 + 1e-9) / 100:.2f}"


def client_time(client: Client) -> float:
    """Return the seconds for one request of a client whose time is bounded as a whole."""
    return COMPLETION_TIMEOUT if client.until is None else float("inf")


def _status(reply: Reply, question: Question, path: str) -> Answer:
    if reply.status in ASKS_FOR_A_KEY and question.key_unknown:
        return Answer(ANSWERED, f"200; {path} asks for an API key")
    return Answer(SILENT if reply.status in BUSY else WRONG, f"200, but {path} answers {reply.status}: {reply.short()}")


def _placed(answer: Answer, at: str) -> Answer:
    return Answer(answer.kind, f"{answer.text}{at and f' ({at.strip()})'}")


def _entry(answer: Any) -> dict[str, Any] | None:  # noqa: ANN401 - any JSON
    entry = answer[0] if isinstance(answer, list) and answer else answer
    return entry if isinstance(entry, dict) else None


def _tokens(entry: dict[str, Any]) -> int | None:
    details = entry.get("meta_info")
    tokens = details.get("completion_tokens") if isinstance(details, dict) else None
    return tokens if isinstance(tokens, int) else None


def _completed(answer: Any) -> Completed:  # noqa: ANN401 - any JSON
    entry = _entry(answer) or {}
    return Completed(text=str(entry.get("text") or ""), tokens=_tokens(entry))
