"""Models."""

import json
import os

import pytest

from sglang_fleet.host.probe.basis import LARGE, SMALL
from sglang_fleet.observe import Model, Unknown, known
from tests.unit.host.probe.folder_host import Host


def shard(size: int = 64, *, header: bytes | None = None) -> bytes:
    text = header or json.dumps({"__metadata__": {}, "w": {"data_offsets": [0, size], "shape": [size]}}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(size)


def model(host: Host, files: dict[str, bytes], *, index: str | None = None) -> Model | Unknown:
    named = dict.fromkeys(("a", "b", "c"), "1.safetensors") | {"d": "2.safetensors"}
    host.write("/models/K2.6/model.safetensors.index.json", index or json.dumps({"weight_map": named}))
    for name, content in files.items():
        host.write(f"/models/K2.6/{name}", content)
    return host.look().models["/models/K2.6"]


def test_a_whole_model(host: Host) -> None:
    found = known(model(host, {"1.safetensors": shard(), "2.safetensors": shard(9)}))
    assert (found.exists, found.directory, found.index, found.missing, found.wrong_size) == (True, True, True, (), ())
    assert found.bytes == len(shard()) + len(shard(9))


def test_a_missing_shard(host: Host) -> None:
    assert known(model(host, {"1.safetensors": shard()})).missing == ("2.safetensors",)


@pytest.mark.parametrize(
    "content", [b"", b"1234", shard()[:-1], shard() + b"x", b"version https://git-lfs.github.com/spec/v1\n"]
)
def test_a_shard_of_the_wrong_size(host: Host, content: bytes) -> None:
    found = known(model(host, {"1.safetensors": shard(), "2.safetensors": content}))
    assert (found.missing, found.wrong_size) == ((), ("2.safetensors",))


@pytest.mark.parametrize("header", [b"{", b"[]", b'{"w": {}}', b'{"w": {"data_offsets": ["x", "y"]}}', b'{"w": 1}'])
def test_f7_a_shard_with_a_damaged_header_is_unknown(host: Host, header: bytes) -> None:
    found = model(host, {"1.safetensors": shard(), "2.safetensors": shard(header=header)})
    assert isinstance(found, Unknown)
    assert "2.safetensors" in found.why


def test_a_header_beyond_the_limit_is_not_read(host: Host) -> None:
    path = host.write("/models/K2.6/1.safetensors", (LARGE + 1).to_bytes(8, "little"))
    os.truncate(path, LARGE + 100)
    assert isinstance(model(host, {"2.safetensors": shard()}), Unknown)


@pytest.mark.parametrize(
    "index", ["{", "[]", "{}", '{"weight_map": {"w": "../../etc/shadow"}}', '{"weight_map": {"w": []}}']
)
def test_f7_a_damaged_index_is_unknown(host: Host, index: str) -> None:
    assert isinstance(model(host, {}, index=index), Unknown)


def test_without_an_index_what_is_there_is_checked(host: Host) -> None:
    host.write("/models/K2.6/model.safetensors", shard()[:-1])
    found = known(host.look().models["/models/K2.6"])
    assert (found.exists, found.index, found.wrong_size) == (True, False, ("model.safetensors",))


def test_a_model_that_is_no_folder(host: Host) -> None:
    host.write("/models/K2.6", "x")
    found = known(host.look().models["/models/K2.6"])
    assert (found.exists, found.directory) == (True, False)


def test_the_config_of_a_model_comes_as_it_is_written(host: Host) -> None:
    text = '{"architectures": ["KimiK2ForCausalLM"], "name": "\u00e9"}\n'
    host.write("/models/K2.6/config.json", text)
    assert known(host.look().models["/models/K2.6"]).config == text


def test_a_model_without_a_config(host: Host) -> None:
    assert known(host.look().models["/models/K2.6"]).config is None  # no folder at all
    host.write("/models/K2.6/a.safetensors", shard())
    assert known(host.look().models["/models/K2.6"]).config is None


def test_f7_a_config_that_cannot_be_read_is_unknown_and_hides_nothing_else(host: Host) -> None:
    host.write("/models/K2.6/config.json", b" " * (SMALL + 1))
    found = known(host.look().models["/models/K2.6"])
    assert isinstance(found.config, Unknown)
    assert found.directory
    assert host.look().unknowns() == ()  # no plan hangs on it
