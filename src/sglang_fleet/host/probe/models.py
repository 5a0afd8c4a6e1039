"""Model folders: whole, by their shards' own headers."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from .basis import LARGE, Unreadable, from_json, is_there, leaf, names, read

if TYPE_CHECKING:
    from typing import Any


def model(root: str, path: str) -> dict[str, Any]:
    """Whether a model is whole: each shard in its index is there and as long as its header says; no hash."""
    folder = root + path
    index = f"{folder}/model.safetensors.index.json"
    facts: dict[str, Any] = {"exists": is_there(folder), "directory": False, "index": False, "bytes": 0}
    facts.update(missing=[], wrong_size=[])
    if not facts["exists"] or not stat.S_ISDIR(os.stat(folder).st_mode):
        return facts
    facts.update(directory=True, index=is_there(index))
    present = [name for name in names(folder) if name.endswith(".safetensors")]
    for shard in shards(index) if facts["index"] else present:
        try:
            size = os.stat(f"{folder}/{shard}").st_size
        except FileNotFoundError:
            facts["missing"].append(shard)
            continue
        facts["bytes"] += size
        if size != size_by_header(f"{folder}/{shard}", size):
            facts["wrong_size"].append(shard)
    return facts


def described_model(root: str, path: str) -> dict[str, Any]:
    """A model, with its config.json as it is written: the controller reads it, once for all hosts with the same."""
    return {**model(root, path), "config": leaf(config, f"{root}{path}/config.json")}


def config(path: str) -> str | None:
    """The text of a model's config.json; None without one."""
    try:
        return read(path).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def shards(index: str) -> list[str]:
    """The files an index names."""
    content = from_json(read(index, LARGE).decode("utf-8", "replace"), index)
    if not isinstance(content, dict) or not isinstance(content.get("weight_map"), dict):
        raise Unreadable(f"{index}: no weight_map")
    found = set(content["weight_map"].values())
    for name in found:
        if not isinstance(name, str) or name.startswith("/") or ".." in name.split("/"):
            raise Unreadable(f"{index}: {str(name)[:100]!r} is not a file name")
    return sorted(found)


def size_by_header(path: str, size: int) -> int:
    """The length a safetensors file should have; -1 if not even its header fits into its `size` bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        length = int.from_bytes(os.read(descriptor, 8), "little")
        if 8 + length > size:  # truncated, or a Git LFS pointer
            return -1
        if length > LARGE:
            raise Unreadable(f"{path}: a header of {length} bytes")
        header = from_json(os.read(descriptor, length).decode("utf-8", "replace"), path)
        tensors = (tensor for name, tensor in header.items() if name != "__metadata__")
        return 8 + length + max((int(tensor["data_offsets"][1]) for tensor in tensors), default=0)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        raise Unreadable(f"{path}: not a safetensors header") from None
    finally:
        os.close(descriptor)
