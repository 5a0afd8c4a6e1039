"""What the settings of one host come to, whichever host it is: hosts with equal settings cost one verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from pydantic import ValidationError

from sglang_fleet.spec import checks
from sglang_fleet.spec.base import Noun
from sglang_fleet.spec.deployment import Deployment
from sglang_fleet.spec.extra import extra_arguments
from sglang_fleet.spec.findings import Finding, worded
from sglang_fleet.spec.network import Network
from sglang_fleet.spec.nodes import several_nodes
from sglang_fleet.spec.service import Service
from sglang_fleet.spec.sketch import Sketch, sketch_of, sketch_of_settings
from sglang_fleet.variables import Node, dotted, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one tree comes to: the spec that may be deployed, if any; what is shown, judged, known to others; errors."""

    deployment: Deployment | None
    readable: Deployment | None
    judged: Deployment | None
    gone: frozenset[str]
    findings: tuple[Finding, ...]
    sketch: Sketch


def settings_of(tree: Node) -> dict[str, object]:
    """The settings of a tree, as plain values."""
    settings = plain(tree)
    assert isinstance(settings, dict)  # noqa: S101  # `gather` refuses every other kind of file
    services = tree.value["services"] if isinstance(tree.value, dict) and "services" in tree.value else None
    if services is not None and isinstance(services.value, dict):
        for name, service in services.value.items():
            environment = service.value.get("environment") if isinstance(service.value, dict) else None
            if environment is not None and isinstance(environment.value, dict):
                # 007 or 1.10 as a variable is meant as it is written.
                texts = {key: node.text for key, node in environment.value.items() if node.text is not None}
                settings["services"][name]["environment"].update(texts)
    return settings


class _Host(Noun):
    network: Network = Network()


def network_of(settings: dict[str, object]) -> tuple[Network | None, list[Finding]]:
    """Take out what is a single host's own, and judge it: all the rest may be alike for a thousand hosts."""
    if "network" not in settings:
        return Network(), []
    try:
        return _Host.model_validate({"network": settings.pop("network")}).network, []
    except ValidationError as error:
        return None, worded(error)


def verdict_on(settings: dict[str, object], *, folder: Path, catalogue: Callable[[str], checks.Catalogue]) -> Verdict:
    """Judge settings by themselves, less what `network_of` took out.

    Args:
        settings: what is written.
        folder: the project folder.
        catalogue: the flags of an SGLang version, or of the nearest one.
    """
    findings: list[Finding] = []
    try:
        deployment: Deployment | None = Deployment.model_validate(settings)
    except ValidationError as error:
        findings += worded(error)
        deployment = None
    readable, judged, gone = deployment, deployment, frozenset[str]()
    services: Mapping[str, Service] = deployment.services if deployment is not None else {}
    if deployment is None:
        services, left, gone = _by_themselves(settings)
        raw = _mapping(settings.get("services"))
        readable = _of_services(settings, {name: raw[name] for name in services})
        judged = _of_services(settings, left) if gone else readable
        sketch = sketch_of_settings(settings, left=left, gone=gone)
    else:
        sketch = sketch_of(deployment)
    findings += checks.services(services)
    # Of a service with another error, too: how it is cut into nodes.
    findings += [one for one in several_nodes({**sketch.judgeable(), **services}) if one not in findings]
    findings += checks.files(_files(settings), folder=folder)
    findings += _against_catalogue(settings, found=findings, catalogue=catalogue)
    is_wrong = any(not finding.rule for finding in findings)
    return Verdict(None if is_wrong else deployment, readable, judged, gone, tuple(findings), sketch)


def _by_themselves(settings: dict[str, object]) -> tuple[dict[str, Service], dict[str, object], frozenset[str]]:
    """The services that are right by themselves; what is written of all that can be judged; and what is not there."""
    valid: dict[str, Service] = {}
    left: dict[str, object] = {}
    gone: set[str] = set()
    for name, raw in _mapping(settings.get("services")).items():
        try:
            valid[name] = Service.model_validate({**_mapping(raw), "name": name})
            left[name] = raw
        except ValidationError as error:
            from sglang_fleet.spec.remains import remains  # noqa: PLC0415  # only a mistake needs it

            try:
                left[name], taken = remains(_mapping(raw), name=name, error=error)
            except ValidationError:
                continue
            gone.update(dotted(("services", name, *path)) for path in taken)
    return valid, left, frozenset(gone)


def _of_services(settings: dict[str, object], services: Mapping[str, object]) -> Deployment | None:
    """The spec with these services only; None when something else is wrong too."""
    try:
        return Deployment.model_validate({**settings, "services": services})
    except ValidationError:
        return None


def _against_catalogue(
    settings: dict[str, object], *, found: list[Finding], catalogue: Callable[[str], checks.Catalogue]
) -> Iterator[Finding]:
    version = _mapping(settings.get("sglang")).get("version")
    if not isinstance(version, str) or any(finding.path == ("sglang", "version") for finding in found):
        return
    try:
        flags = catalogue(version)
    except LookupError as error:
        yield Finding(("sglang", "version"), str(error.args[0] if error.args else error))
        return
    if flags.version != version:
        yield checks.other_version(version, flags.version)
    for name, raw in _mapping(settings.get("services")).items():
        args = _mapping(_mapping(raw).get("args"))
        wrong = [
            str(finding.path[3])
            for finding in found
            if finding.path[:3] == ("services", name, "args") and finding.path[3:]
        ]
        is_nearest = flags.version != version
        yield from checks.arguments(args, service=name, catalogue=flags, skip=wrong, is_nearest=is_nearest)
        extra = _mapping(raw).get("extra_args")
        if _is_words(extra):
            refused = any(finding.path == ("services", name, "extra_args") for finding in found)
            yield from extra_arguments(
                extra, service=name, written=args, catalogue=flags, is_nearest=is_nearest, refused=refused
            )
        secrets = _mapping(_mapping(raw).get("secrets"))
        yield from checks.secrets(secrets, service=name, catalogue=flags, is_nearest=is_nearest)


def _files(settings: dict[str, object]) -> Iterator[tuple[tuple[str, ...], str]]:
    for section in ("cuda", "sglang"):
        name = _mapping(settings.get(section)).get("requirements")
        if isinstance(name, str) and name.isprintable() and not name.startswith(("/", "~")):
            yield (section, "requirements"), name


def _is_words(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
