"""`sglang-fleet render`: the exact files of a service, without a connection and without a secret."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import click

from sglang_fleet.cli.answering import AnsweringCommand, problems_of
from sglang_fleet.cli.common import (
    ERRORS,
    Failed,
    Settings,
    data_option,
    examples,
    inventory_argument,
    json_option,
    load_settings,
    problem_json,
    show_notes,
    show_problems,
    warn,
    wrapped,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from sglang_fleet.preview import Preview
    from sglang_fleet.problems import Problem


_LOCK_FILES = ("sglang.requirements", "cuda.requirements")


def _result(host: str | None, previews: Sequence[Preview], problems: Sequence[Problem]) -> dict[str, object]:
    return {
        "host": host,
        "services": [_json(preview) for preview in previews],
        "problems": [problem_json(problem) for problem in problems],
    }


def _unanswered(params: Mapping[str, Any], problems: Sequence[Problem]) -> dict[str, object]:
    return _result(params.get("host"), (), problems)


@click.command(
    "render",
    cls=AnsweringCommand,
    unanswered=_unanswered,
    epilog=examples(
        "sglang-fleet render inventory/prod.py gpu-1.example.net",
        "sglang-fleet render inventory/prod.py gpu-1.example.net k26 --json",
    ),
)
@inventory_argument
@click.argument("host")
@click.argument("service", required=False)
@data_option
@json_option
def command(inventory: str, host: str, service: str | None, data: Sequence[str], *, as_json: bool) -> None:
    """Show the files that a deploy would write for HOST.

    The unit, the environment and the rest, of all services or only SERVICE. No connection is made and no secret is
    read: each stands as •••, and a release whose id depends on one is called <release>. Settings that a deploy would
    refuse are rendered as far as they can be, and said; without a lock file the venv is called <venv>.
    """
    settings = load_settings(inventory, data=data)
    show_notes(settings)
    _known(host, settings.hosts, what="host", where=settings.inventory)
    problems = [problem for problem in settings.loaded.problems if host in problem.hosts or not problem.hosts]
    if problems:
        show_problems(problems)
    try:
        previews = _previews(settings, host, service)
    except Failed as failed:
        failed.problems = [*problems, *problems_of(failed)]
        raise
    if as_json:
        write_json(_result(host, previews, problems))
    else:
        click.echo("\n".join(_text(preview, host) for preview in previews), nl=False)
    # What a lock file holds is not rendered.
    if any(problem.key not in _LOCK_FILES for problem in problems):
        raise SystemExit(ERRORS)


def _previews(settings: Settings, host: str, service: str | None) -> list[Preview]:
    from sglang_fleet.preview import preview  # noqa: PLC0415  # --help needs no template engine

    deployment = settings.loaded.readable.get(host)
    if deployment is None:
        return []
    unreadable = [name for name in _written_services(settings, host) if name not in deployment.services]
    if service in unreadable or (unreadable and not deployment.services):
        what = service or " and ".join(unreadable)
        raise Failed(f"{what} cannot be rendered for {host}: see above")
    if service is not None:
        _known(service, deployment.services, what="service", where=host)
    if not deployment.services:
        raise Failed(f"the settings give {host} no service")
    if unreadable:
        warn(f"{' and '.join(unreadable)} cannot be rendered: see above")
    return [
        preview(one, deployment=deployment, folder=settings.folder)
        for name, one in deployment.services.items()
        if service in (None, name)
    ]


def _written_services(settings: Settings, host: str) -> list[str]:
    """The services that the settings name for a host, also those that cannot be read."""
    tree = settings.loaded.trees[host].value
    services = tree.get("services") if isinstance(tree, dict) else None
    if services is None or not isinstance(services.value, dict):
        return []
    return [name for name, node in services.value.items() if node.value is not None]


def _known(name: str, names: Collection[str], *, what: str, where: str) -> None:
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=3)
    near = [other for other in names if other in near]  # in their own order
    shown = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(list(names)[:8]) or 'none'}"
    if not near and len(names) > 8:  # noqa: PLR2004  # as many as one line holds
        shown += f" and {len(names) - 8} more"
    raise Failed(wrapped(f"{where} has no {what} {name!r}: {shown}"))


def _text(preview: Preview, host: str) -> str:
    from sglang_fleet.preview import UNKNOWN_RELEASE  # noqa: PLC0415  # as above

    release = preview.release or f"{UNKNOWN_RELEASE}: {preview.why_unknown}"
    parts = [f"# {preview.service} on {host}, release {release}\n"]
    for file in preview.files:
        name = f"unit {preview.unit_name}" if file.name == "unit" else file.name
        owner = "" if file.owner == "root" else f", {file.owner}"
        parts.append(f"# {name} ({file.mode}{owner})\n{file.text}")
    return "\n".join(parts)


def _json(preview: Preview) -> dict[str, object]:
    return {
        "service": preview.service,
        "unit_name": preview.unit_name,
        "release": preview.release,
        "argv": list(preview.argv),
        "files": [
            {"name": file.name, "mode": file.mode, "owner": file.owner, "text": file.text} for file in preview.files
        ],
    }
