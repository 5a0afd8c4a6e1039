"""One HTTP answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Answer:
    """One HTTP answer: JSON, or text when `body` is a string, or a stream of events."""

    status: int
    body: object = ""
    events: Iterator[object] | None = None
    content_type: str = "application/json"
