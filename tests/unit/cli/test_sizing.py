"""`sizing` says what fits, and what it does not know."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sglang_fleet.cli.sizing import sized
from sglang_fleet.spec import Loaded
from tests.factories import deployment as factory_deployment
from tests.factories import service
from tests.unit.sizing import known_models as known

Run = Callable[..., Result]
SHOWN = """\
k26 on gpu-1, gpu-2
  /root/models/Kimi-K2.6: KimiK25ForConditionalGeneration, 61 layers,
  compressed-tensors

  GPUs         layers each       weights     cache a token
  0                      7      57.9 GiB          7.88 KiB
  1-2                    7      63.9 GiB          7.88 KiB
  3-6                    8      73.1 GiB          9.00 KiB
  7                      8      75.3 GiB          9.00 KiB

  layout      pp 8
  KV cache    MLA in bfloat16
  memory      95.6 GiB a GPU, mem_fraction_static 0.88: 7.0 GiB for KV cache
              where weights take most
  tokens      at most 815,000
  requests    at most 24 of the full 32,768 tokens; no more than 64 at once
  assumed:
  - weights are an estimate from the shapes in config.json; no index and no
    weight files were found
  - the image encoder is not counted
  - 2 GiB of each GPU for CUDA and NCCL before the weights load, and nothing
    else on it
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with the models that the settings name."""
    folder = tmp_path / "models"
    put(folder, "Kimi-K2.6", known.KIMI_K25)
    return folder


def put(models: Path, name: str, config: dict[str, Any]) -> Path:
    (models / name).mkdir(parents=True)
    (models / name / "config.json").write_text(json.dumps(config))
    return models / name


def loaded(**services: dict[str, Any]) -> Loaded:
    """Settings of one host."""
    return Loaded({"gpu-1": factory_deployment(*(service(name=name, args=args) for name, args in services.items()))})


@pytest.mark.usefixtures("deployment")
def test_the_example_in_80_columns(run: Run, models: Path) -> None:
    result = run("sizing", "inventory/prod.py", "--models", str(models), "--gpu-memory", "97887MiB")
    assert (result.stdout, result.stderr, result.exit_code) == (SHOWN, "", 0)
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.usefixtures("deployment")
def test_the_same_numbers_as_json(run: Run, models: Path) -> None:
    result = run("sizing", "inventory/prod.py", "--models", str(models), "--gpu-memory", "97887 mib", "--json")
    (found,) = json.loads(result.stdout)["services"]
    assert (found["hosts"], found["service"], found["failure"]) == (["gpu-1", "gpu-2"], "k26", None)
    assert [stage["cache_bytes_per_token_per_gpu"] for stage in found["stages"]] == [8064] * 3 + [9216] * 5
    assert [stage["first_layer"] for stage in found["stages"]] == [0, 7, 14, 21, 29, 37, 45, 53]
    assert found["tokens"] // 1000 == 815
    assert (found["bound"], found["requests_of_full_context"], found["requests_at_once"]) == ("at most", 24, 64)
    assert found["model_folder"] == str(models / "Kimi-K2.6")


@pytest.mark.usefixtures("deployment")
def test_without_memory_there_is_no_number_of_tokens(run: Run, models: Path) -> None:
    result = run("sizing", "inventory/prod.py", "--models", str(models))
    assert "tokens      give --gpu-memory to know how many fit" in result.stdout
    assert "75.3 GiB" in result.stdout
    assert result.exit_code == 0


def test_a_model_that_is_not_here_is_an_error_that_says_where_it_was_looked_for(run: Run, deployment: Path) -> None:
    result = run("sizing", "inventory/prod.py")
    assert "give --models DIR, with\n  DIR/Kimi-K2.6/config.json" in result.stdout
    assert result.exit_code == 1
    (deployment / "empty").mkdir()
    result = run("sizing", "inventory/prod.py", "--models", "empty", "--json")
    assert json.loads(result.stdout)["services"][0]["failure"].endswith("empty has no Kimi-K2.6/config.json")
    assert result.exit_code == 1


@pytest.mark.usefixtures("deployment")
def test_a_model_that_cannot_be_read_names_the_file(run: Run, models: Path) -> None:
    (models / "Kimi-K2.6/config.json").write_text("{")
    result = run("sizing", "inventory/prod.py", "--models", "models")
    assert "models/Kimi-K2.6/config.json: is not JSON" in result.stdout
    assert result.exit_code == 1


@pytest.mark.usefixtures("deployment")
def test_what_cannot_fit_is_an_error_where_the_index_says_so(run: Run, models: Path) -> None:
    index = {"metadata": {"total_size": 595_000_000_000}, "weight_map": {}}
    (models / "Kimi-K2.6/model.safetensors.index.json").write_text(json.dumps(index))
    result = run("sizing", "inventory/prod.py", "--models", "models", "--gpu-memory", "80GiB")
    assert "error: mem_fraction_static: weights take 75." in result.stdout
    assert "tokens      none: the weights leave no room" in result.stdout
    assert "requests" not in result.stdout
    assert result.exit_code == 1


@pytest.mark.usefixtures("deployment", "models")
def test_what_is_only_estimated_not_to_fit_is_a_warning(run: Run) -> None:
    result = run("sizing", "inventory/prod.py", "--models", "models", "--gpu-memory", "24GiB")
    assert "warning: mem_fraction_static: weights take 75.3 GiB of a GPU" in result.stdout
    assert result.exit_code == 0


def test_what_sglang_would_refuse_of_the_model_is_named_with_its_rule(run: Run, deployment: Path, models: Path) -> None:
    settings = deployment / "group_vars/all.yml"
    settings.write_text(settings.read_text().replace("tp_size: 1", "tp_size: 3"))
    result = run("sizing", "inventory/prod.py", "--models", str(models), "--gpu-memory", "96GiB")
    said = " ".join(result.stdout.split())
    assert "SGLang refuses this: tp_size: has 3 GPUs share 64 attention heads, which do not divide (SGL111)" in said
    assert max(map(len, result.stdout.splitlines())) <= 80
    (found,) = json.loads(run("sizing", "inventory/prod.py", "--models", str(models), "--json").stdout)["services"]
    assert [refused["rule"] for refused in found["refused"]] == ["SGL111"]


@pytest.mark.usefixtures("models")
def test_settings_that_are_wrong_are_shown_and_the_rest_is_sized(run: Run, deployment: Path) -> None:
    (deployment / "host_vars").mkdir(exist_ok=True)
    (deployment / "host_vars/gpu-2.yml").write_text("services: {k26: {args: {pp_size: none}}}\n")
    result = run("sizing", "inventory/prod.py", "--models", "models")
    assert "host_vars/gpu-2.yml:1" in result.stderr
    assert result.stdout.startswith("k26 on gpu-1\n")
    assert result.exit_code == 1


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize("written", ["96", "96GB", "0GiB", "-1GiB", "nan GiB", "GiB", "9999999999GiB"])
def test_memory_needs_a_unit_that_means_one_thing(run: Run, written: str) -> None:
    result = run("sizing", "inventory/prod.py", "--gpu-memory", written)
    assert result.exit_code == 2
    assert "96GiB or 97887MiB" in result.stderr


def test_each_service_once_with_the_hosts_that_share_it(models: Path) -> None:
    put(models, "Llama", known.LLAMA_8B)
    same, other = (
        loaded(a={}, b={"model_path": "meta/Llama/"}),
        loaded(a={}, b={"model_path": "meta/Llama", "tp_size": 2}),
    )
    hosts = Loaded(
        {"gpu-1": same.deployments["gpu-1"], "gpu-2": same.deployments["gpu-1"], "gpu-3": other.deployments["gpu-1"]}
    )
    found = sized(hosts, models=models, gpu_memory=80 << 30)
    assert [(one.service, one.hosts) for one in found] == [
        ("a", ("gpu-1", "gpu-2", "gpu-3")),
        ("b", ("gpu-1", "gpu-2")),
        ("b", ("gpu-3",)),
    ]


def test_a_model_path_that_is_here_needs_no_folder_of_models(tmp_path: Path) -> None:
    folder = put(tmp_path, "there", known.LLAMA_8B)
    (found,) = sized(loaded(a={"model_path": str(folder)}), models=None, gpu_memory=None)
    assert found.folder == folder
    assert found.facts is not None


@pytest.mark.parametrize("model", ["..", ".", "/", "a/.."])
def test_a_name_never_leaves_the_folder_of_models(tmp_path: Path, model: str) -> None:
    models = put(tmp_path, "models", known.LLAMA_8B)
    (tmp_path / "config.json").write_text("{}")
    (found,) = sized(loaded(a={"model_path": model}), models=models, gpu_memory=None)
    assert found.folder is None
