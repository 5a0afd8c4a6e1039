"""What a model's own files say about it: config.json, the index of its weights, the headers of its shards."""

from sglang_fleet.models.facts import ModelFacts
from sglang_fleet.models.parsing import parse_facts
from sglang_fleet.models.reading import ModelUnreadable, read_facts

__all__ = ["ModelFacts", "ModelUnreadable", "parse_facts", "read_facts"]
