"""A model folder made on the spot: a small Llama without weights (`--load-format dummy` makes them up)."""

import json
from pathlib import Path

from lab.real.model import LLAMA, texts

__all__ = ["LLAMA", "make"]


def make(folder: Path, **settings: object) -> Path:
    """Write the folder; settings replace those of its config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in texts().items():
        (folder / name).write_text(json.dumps(content))
    (folder / "config.json").write_text(json.dumps(LLAMA | settings))
    return folder
