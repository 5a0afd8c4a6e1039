"""Write docs/settings.md from the spec's own models and docstrings: `python -m tools.settings_page`."""

import re
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sglang_fleet.spec import (
    Arguments,
    Cuda,
    Golden,
    Health,
    Limits,
    Nccl,
    Network,
    Rollout,
    SecretSource,
    Service,
    Sglang,
    Throughput,
)
from sglang_fleet.spec.durations import written

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("cuda", Cuda),
    ("sglang", Sglang),
    ("services.NAME", Service),
    ("services.NAME.args", Arguments),
    ("services.NAME.nccl", Nccl),
    ("services.NAME.secrets.KEY", SecretSource),
    ("services.NAME.health", Health),
    ("services.NAME.health.golden", Golden),
    ("services.NAME.health.throughput", Throughput),
    ("services.NAME.limits", Limits),
    ("network", Network),
    ("rollout", Rollout),
)
HEAD = """# Settings

<!-- Written by `python -m tools.settings_page` from the models in src/sglang_fleet/spec. -->

Read from `group_vars/all.yml`, then the host's groups in alphabetical order, then `host_vars/HOST.yml`, then what
stands beside the host in the inventory (`network` alone), then `--data`. Mappings merge key by key, lists and values
replace, null removes. A folder `GROUP/` of files does as well. A duration is written like `2s`, `30m` or `1h30m`; a
plain number is seconds. Errors name file, line and key, all at once.
"""
NOT_WRITTEN = {"name"}  # the key under `services` is the name
DURATIONS = {"startup_deadline", "ready_deadline", "interval", "soak", "drain"}


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_section(path, model) for path, model in SECTIONS)])


def _section(path: str, model: type[BaseModel]) -> str:
    summary, explained = _docstring(model)
    lines = [f"## {path}", "", summary, "", "| key | default | what it is |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {_default(name, field)} | {explained.get(name, '')} |"
        for name, field in model.model_fields.items()
        if name not in NOT_WRITTEN
    ]
    return "\n".join([*lines, ""])


def _docstring(model: type[BaseModel]) -> tuple[str, dict[str, str]]:
    text = re.sub(r"\n {4}", "\n", model.__doc__ or "")
    summary, _, attributes = text.partition("Attributes:\n")
    joined = re.sub(r"\n {8,}", " ", attributes)
    pairs = re.findall(r"^ {4}(\w+): (.*)$", joined, re.MULTILINE)
    return " ".join(summary.split()), {name: what.replace("|", "\\|") for name, what in pairs}


def _default(name: str, field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or isinstance(value, BaseModel) or value in ((), {}):
        return ""
    if name in DURATIONS:
        return f"`{written(value)}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(str(part) for part in value)}]`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
