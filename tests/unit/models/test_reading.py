import json
from pathlib import Path

import pytest

from sglang_fleet.models import ModelUnreadable, read_facts
from sglang_fleet.models.reading import weight_files


def folder(path: Path, **files: object) -> Path:
    for name, content in {"config": {"num_hidden_layers": 2}, **files}.items():
        (path / f"{name}.json").write_text(json.dumps(content))
    return path


def index(total: object, *names: str) -> dict[str, object]:
    return {"metadata": {"total_size": total}, "weight_map": {f"layer.{name}": name for name in names}}


def test_only_config_json_is_needed(tmp_path: Path) -> None:
    found = read_facts(folder(tmp_path))
    assert (found.num_hidden_layers, found.weight_bytes, found.shards) == (2, None, 0)


def test_code_of_the_tokenizer_is_found(tmp_path: Path) -> None:
    assert read_facts(folder(tmp_path)).needs_remote_code is False
    code = {"auto_map": {"AutoTokenizer": ["tokenization.Tokenizer", None]}}
    assert read_facts(folder(tmp_path, tokenizer_config=code)).needs_remote_code is True


def test_a_broken_file_of_the_tokenizer_leaves_it_open(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "tokenizer_config.json").write_text("{")
    assert read_facts(path).needs_remote_code is None


def test_the_index_speaks_for_shards_that_are_not_there(tmp_path: Path) -> None:
    path = folder(tmp_path, **{"model.safetensors.index": index(594_000_000_000, "a.safetensors", "b.safetensors")})
    found = read_facts(path)
    assert (found.weight_bytes, found.shards) == (594_000_000_000, 2)
    assert weight_files(path).missing == ("a.safetensors", "b.safetensors")


@pytest.mark.parametrize(("total", "expected"), [(None, 12), (True, 12), (7.0, 7), ("7", 12)])
def test_an_index_without_a_usable_total_leaves_it_to_the_files(tmp_path: Path, total: object, expected: int) -> None:
    path = folder(tmp_path, **{"model.safetensors.index": index(total, "a.safetensors", "b.safetensors")})
    (path / "a.safetensors").write_bytes(b"x" * 4)
    (path / "b.safetensors").write_bytes(b"x" * 8)
    assert read_facts(path).weight_bytes == expected


def test_a_missing_shard_and_no_total_is_not_known(tmp_path: Path) -> None:
    path = folder(tmp_path, **{"model.safetensors.index": index(None, "a.safetensors", "b.safetensors")})
    (path / "a.safetensors").write_bytes(b"x" * 4)
    assert read_facts(path).weight_bytes is None


def test_without_an_index_the_files_count_and_the_second_copy_does_not(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "model.safetensors").write_bytes(b"x" * 5)
    (path / "consolidated.safetensors").write_bytes(b"x" * 5)
    (path / "optimizer.bin").write_bytes(b"x" * 50)
    assert (read_facts(path).weight_bytes, read_facts(path).shards) == (5, 1)


def test_quantization_that_stands_in_a_file_of_its_own(tmp_path: Path) -> None:
    settings = {"quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}}
    found = read_facts(folder(tmp_path, hf_quant_config=settings))
    assert (found.quantization, found.weight_bits, found.unquantized) == ("modelopt_fp4", 4, ("lm_head",))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "is not there"),
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("\xff", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: str | None, why: str) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content, "latin-1")
    with pytest.raises(ModelUnreadable) as caught:
        read_facts(tmp_path)
    assert (caught.value.path, caught.value.why) == (tmp_path / "config.json", why)


def test_a_broken_index_is_not_passed_over(tmp_path: Path) -> None:
    (folder(tmp_path) / "model.safetensors.index.json").write_text("nothing")
    with pytest.raises(ModelUnreadable, match=r"index\.json: is not JSON"):
        read_facts(tmp_path)


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    with pytest.raises(ModelUnreadable, match=r"config\.json: .*directory"):
        read_facts(tmp_path)
