"""What the product renders comes back: random services through unit and environment files, and import."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sglang_fleet.catalog import Argument, catalogue
from sglang_fleet.importing import Files, Imported, import_text
from sglang_fleet.render import Places, command_words, environment_text, limits, unit_text
from sglang_fleet.spec import Service
from sglang_fleet.spec.arguments import SECRETS, Arguments
from sglang_fleet.unit_reading import environment_file

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = "0.5.23"
PLACES = Places(service="k26", release="0123456789abcdef", venv_id="fedcba9876543210", cuda_home="/usr/local/cuda-13.0")


def harmless(text: str) -> str:
    """The text as one that no reader of secrets looks into, and that is not blank."""
    visible = text.replace("://", ":/")
    return f"x{visible}" if visible.startswith(("{", "[")) or not visible.strip() else visible


visible = st.characters(categories=["L", "N", "P", "S"])
lines = st.text(visible | st.just(" "), max_size=20).map(lambda text: harmless(text.strip()))
texts = st.text(visible | st.sampled_from(" \n\t\r\\\"'%$;#\x01\x7f"), max_size=20).map(harmless)
names = st.text("abcdefgh", min_size=1, max_size=8)


class Beside(Files):
    """The environment file of a release, wherever a unit looks for it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        super().__init__()
        object.__setattr__(self, "_text", text)

    def read(self, name: str) -> str | None:
        return self._text if name.endswith("/environment") else None  # type: ignore[attr-defined]


def one_value(argument: Argument) -> st.SearchStrategy[Any]:
    if argument.choices:
        return st.sampled_from(argument.choices)
    if argument.kind in ("flag", "switch"):
        return st.just(value=True) if argument.kind == "flag" else st.booleans()
    if argument.kind == "json":
        return st.dictionaries(names, st.integers() | st.booleans(), max_size=3)
    values: dict[str, st.SearchStrategy[Any]] = {
        "int": st.integers(-(10**12), 10**12),
        "float": st.floats(allow_nan=False, allow_infinity=False),
        "size": st.sampled_from([1, 8000, "8k", "4Ki", "1.5M"]),
    }
    return values.get(argument.kind, texts)


def value_of(argument: Argument) -> st.SearchStrategy[Any]:
    one = one_value(argument)
    return st.lists(one, min_size=1, max_size=3) if argument.nargs in ("*", "+") else one


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments that the settings take, in a random order, with the typed ones among them."""
    typed: dict[str, st.SearchStrategy[Any]] = {
        "model_path": lines,
        "host": lines,
        "port": st.integers(1, 65535),
        "tp_size": st.integers(1, 64),
        "mem_fraction_static": st.floats(0.01, 0.99),
        "context_length": st.integers(1, 10**7),
        "trust_remote_code": st.just(value=True),
    }
    foreign = [
        argument
        for argument in catalogue(VERSION).arguments
        if argument.name not in {*Arguments.model_fields, *SECRETS, "config"}
    ]
    chosen = draw(st.lists(st.sampled_from(foreign), max_size=8, unique_by=lambda argument: argument.destination))
    found = {name: draw(strategy) for name, strategy in typed.items()}
    for argument in chosen:
        value = draw(value_of(argument))
        if argument.check(argument.name, value) is None:
            found[argument.name] = value
    return {name: found[name] for name in draw(st.permutations(list(found)))}


services = st.fixed_dictionaries(
    {
        "name": st.just("k26"),
        "user": st.sampled_from(["root", "sglang", "llm"]),
        "args": arguments(),
        "nccl": st.fixed_dictionaries(
            {},
            optional={
                "p2p_level": st.sampled_from([0, 5, "PXB"]),
                "ib_disable": st.booleans(),
                "algo": st.sampled_from(["Ring", "^Tree", "allreduce:ring"]),
                "buffsize": st.integers(0, 2**40),
                "socket_ifname": lines,
            },
        ),
        "environment": st.dictionaries(st.from_regex(r"SGL_[A-Z]{1,8}", fullmatch=True), texts, max_size=4),
    },
    optional={
        "description": lines,
        "gpus": st.lists(st.integers(0, 15), min_size=1, max_size=8, unique=True),
        "working_directory": lines.map(lambda text: f"/srv/{text.replace('/', '-')}x"),
        "limits": st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(("nofile", "memlock", "nproc", "core"), st.integers(0, 2**50) | st.just("infinity")),
        ),
    },
)  # fmt: skip


def reimported(one: Service) -> Imported:
    unit = unit_text(one, version=VERSION, places=PLACES)
    return import_text(unit, source="sglang-k26.service", version=VERSION, files=Beside(environment_text(one, PLACES)))


def words(one: Service) -> list[str]:
    found = command_words(one, version=VERSION, venv="/v", release_folder="/r")
    return [word for option in found for word in option]


def made(settings_of_it: Mapping[str, Any]) -> Service:
    [(name, service)] = settings_of_it["services"].items()
    return Service.model_validate({"name": name, **service})


@settings(max_examples=60, deadline=None)
@given(services)
def test_a_rendered_unit_comes_back_as_the_same_service(raw: dict[str, Any]) -> None:
    one = Service.model_validate(raw)
    found = reimported(one)
    back = made(YAML(typ="safe", pure=True).load(found.yaml))
    assert words(back) == words(one)
    assert environment_file(environment_text(back, PLACES)) == environment_file(environment_text(one, PLACES))
    assert {key: str(value) for key, value in limits(back).items()} == {
        key: str(value) for key, value in limits(one).items()
    }
    assert (back.user, back.gpus) == (one.user, one.gpus)
    assert back.working_directory in (one.working_directory, "/var/lib/sglang/k26", f"{one.working_directory}/")


@settings(max_examples=60, deadline=None)
@given(services)
def test_the_yaml_says_what_the_json_says(raw: dict[str, Any]) -> None:
    found = reimported(Service.model_validate(raw))
    assert json.loads(json.dumps(YAML(typ="safe", pure=True).load(found.yaml))) == json.loads(
        json.dumps(found.settings)
    )
