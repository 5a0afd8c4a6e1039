"""The texts of a release, from the story's own settings."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sglang_fleet.render import Places, RenderedFile, command_words, render, unit_text, yaml_text
from sglang_fleet.spec import Service, load
from tests.factories import service

REPOSITORY = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden" / "sglang-k26.service"
PLACES = Places(service="k26", release="0123456789abcdef", venv_id="fedcba9876543210", cuda_home="/usr/local/cuda-13.0")
FOLDER = "/var/lib/sglang-fleet/services/k26/releases/0123456789abcdef"
VENV = "/var/lib/sglang-fleet/venvs/fedcba9876543210"
POISON = "poison-5ecret"
# design.md, "The story it exists for".
STORY = (
    "--model-path /root/models/Kimi-K2.6 --port 30001 --host 0.0.0.0 --tp-size 1 --pp-size 8 --pp-async-batch-depth 8 "
    "--mem-fraction-static 0.88 --context-length 32768 --max-running-requests 64 --attention-backend triton "
    "--trust-remote-code --grammar-backend none"
)


@pytest.fixture(scope="module", name="story")
def the_story() -> Service:
    """The service of group_vars/all.yml."""
    loaded = load(folder=REPOSITORY, hosts={"h1": []}, overrides={})
    assert loaded.problems == []
    return loaded.deployments["h1"].services["k26"]


def without_secrets(one: Service) -> Service:
    return one.model_copy(update={"secrets": {}})


def words(one: Service) -> list[str]:
    lists = command_words(one, version="0.5.23", venv=VENV, release_folder=FOLDER)
    return [word for words in lists for word in words]


def files(one: Service, **secrets: str) -> dict[str, RenderedFile]:
    return {file.name: file for file in render(service=one, version="0.5.23", places=PLACES, secrets=secrets)}


def environment(one: Service, **secrets: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in files(one, **secrets)["environment"].text.splitlines())


def settings(one: Service) -> dict[str, str]:
    """The unit's settings that stand once, by name."""
    return dict(
        line.split("=", 1) for line in unit_text(one, version="0.5.23", places=PLACES).splitlines() if "=" in line
    )


def test_the_story_is_the_units_command_line_word_by_word(story: Service) -> None:
    assert " ".join(words(without_secrets(story))) == f"{VENV}/bin/python -m sglang.launch_server {STORY}"


def test_a_secret_argument_adds_a_config_file_and_nothing_else(story: Service) -> None:
    assert words(story) == [*words(without_secrets(story)), "--config", f"{FOLDER}/secrets.yaml"]


def test_the_whole_unit_of_the_story(story: Service) -> None:
    """After a change of the template: read the difference, then write the new text to the golden file."""
    assert unit_text(story, version="0.5.23", places=PLACES) == GOLDEN.read_text()


def test_arguments_that_only_a_later_sglang_knows_render_by_a_plain_rule() -> None:
    one = service(args={"brand_new": True, "brand_old": False, "trust_remote_code": True, "chat_template": ["a", "b"]})
    lists = command_words(one, version="0.5.99", venv=VENV, release_folder=FOLDER)
    for words in (["--trust-remote-code"], ["--brand-new"], ["--chat-template", "a", "b"]):
        assert words in lists
    assert "--brand-old" not in [word for words in lists for word in words]


def test_extra_arguments_come_last(story: Service) -> None:
    one = without_secrets(story).model_copy(update={"extra_args": ("--patched-flag", "a b")})
    assert words(one)[-2:] == ["--patched-flag", "a b"]


def test_the_environment_of_the_story(story: Service) -> None:
    assert environment(without_secrets(story)) == {
        "PATH": f"{VENV}/bin:/usr/local/cuda-13.0/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "CUDA_HOME": "/usr/local/cuda-13.0",
        "HOME": "/var/lib/sglang/k26",
        "PYTHONUNBUFFERED": "1",
        "HF_HOME": "/var/lib/sglang/k26/huggingface",
        "XDG_CACHE_HOME": "/var/cache/sglang/k26/fedcba9876543210",
        "TRITON_CACHE_DIR": "/var/cache/sglang/k26/fedcba9876543210/triton",
        "TORCHINDUCTOR_CACHE_DIR": "/var/cache/sglang/k26/fedcba9876543210/inductor",
        "FLASHINFER_WORKSPACE_BASE": "/var/cache/sglang/k26/fedcba9876543210",
        "MAX_JOBS": "8",
        "HF_HUB_OFFLINE": "1",
        "NCCL_P2P_LEVEL": "5",
        "NCCL_IB_DISABLE": "1",
        "NCCL_ALGO": "Ring",
        "SGLANG_FLEET_RELEASE": "0123456789abcdef",
    }


def test_what_the_operator_sets_wins_except_the_release() -> None:
    found = environment(service(environment={"MAX_JOBS": "2", "PATH": "/opt/bin"}))
    assert (found["MAX_JOBS"], found["PATH"]) == ("2", "/opt/bin")
    assert found["SGLANG_FLEET_RELEASE"] == "0123456789abcdef"


def test_a_model_by_its_name_may_be_downloaded() -> None:
    assert "HF_HUB_OFFLINE" not in environment(service(args={"model_path": "moonshotai/Kimi-K2.6"}))


def test_gpus_are_those_that_nvidia_smi_numbers() -> None:
    found = environment(service(gpus=[4, 5]))
    assert (found["CUDA_VISIBLE_DEVICES"], found["CUDA_DEVICE_ORDER"]) == ("4,5", "PCI_BUS_ID")
    assert "CUDA_VISIBLE_DEVICES" not in environment(service())


def test_a_service_gets_an_account_of_its_own_unless_it_says_otherwise() -> None:
    assert settings(Service.model_validate({"name": "a", "args": {"model_path": "/m"}}))["User"] == "sglang"
    assert settings(service(user="root"))["User"] == "root"


def test_stopping_takes_as_long_as_the_drain_and_what_sglang_needs_after_it() -> None:
    found = settings(service(health={"drain": "2m", "startup_deadline": "30m"}))
    assert found["TimeoutStopSec"] == "160"
    assert found["TimeoutStartSec"] == "1800"


@given(st.floats(min_value=1, max_value=10**7))
def test_a_slow_crash_loop_reaches_the_start_limit(deadline: float) -> None:
    found = settings(service(health={"startup_deadline": deadline}))
    burst, pause = int(found["StartLimitBurst"]), float(found["RestartSec"])
    # 138 s: a start with the port in use, measured.
    assert burst * (max(float(found["TimeoutStartSec"]), 138) + pause) < float(found["StartLimitIntervalSec"])


def test_limits_are_raised_and_can_be_set() -> None:
    assert settings(service())["LimitMEMLOCK"] == "infinity"
    found = settings(service(limits={"nofile": 5, "core": "infinity"}))
    assert (found["LimitNOFILE"], found["LimitCORE"]) == ("5", "infinity")


def test_folders_that_the_server_may_write_to() -> None:
    found = settings(service(writable_paths=["/srv/my logs"], working_directory="/srv/work"))
    assert (found["ReadWritePaths"], found["WorkingDirectory"]) == ('"/srv/my logs"', "/srv/work")


SECRETS: dict[str, Any] = {"api_key": {"env": "A"}, "HF_TOKEN": {"env": "B"}}


def test_secrets_stand_only_in_files_that_keep_others_out() -> None:
    found = files(service(secrets=SECRETS), api_key=f"{POISON}-1", HF_TOKEN=f"{POISON}-2")
    holders = {name: (file.mode, file.owner) for name, file in found.items() if POISON in file.text}
    assert holders == {"secrets.yaml": ("0400", "root"), "environment.secret": ("0600", "root")}
    assert {name for name, file in found.items() if file.mode == "0644"} == {"unit", "logging.json"}


def test_the_service_account_may_read_its_secrets() -> None:
    assert files(service(secrets=SECRETS, user="sglang"), api_key="x")["secrets.yaml"].owner == "sglang"


def test_a_service_without_secrets_has_neither_their_files_nor_their_logging() -> None:
    assert set(files(service())) == {"unit", "environment"}


def test_a_secret_variable_alone_needs_no_config() -> None:
    one = service(secrets={"HF_TOKEN": {"env": "B"}})
    assert "--config" not in words(one)
    assert set(files(one, HF_TOKEN="x")) == {"unit", "environment", "environment.secret"}  # noqa: S106 - no secret


def test_sglang_does_not_log_the_keys_at_its_start() -> None:
    found = files(service(secrets=SECRETS), api_key="x")
    assert environment(service(secrets=SECRETS), api_key="x")["SGLANG_LOGGING_CONFIG_PATH"] == f"{FOLDER}/logging.json"
    config = json.loads(found["logging.json"].text)
    assert config["loggers"]["sglang.srt.entrypoints.engine"]["level"] == "WARNING"
    assert config["root"] == {"level": "INFO", "handlers": ["console"]}


@pytest.mark.parametrize("text", ["🙂", "\x7f", "\x80", "\ufffe", "a\\nb", '"', "- a: b #c", "yes", "007", "\t"])
def test_a_secret_is_read_from_its_yaml_as_it_was_written(text: str) -> None:
    assert YAML(typ="safe", pure=True).load(f"key: {yaml_text(text)}\n") == {"key": text}


@given(st.text(st.characters(codec="utf-8")))
def test_any_secret_is_read_from_its_yaml_as_it_was_written(text: str) -> None:
    assert YAML(typ="safe", pure=True).load(f"key: {yaml_text(text)}\n") == {"key": text}


def test_the_servers_own_log_level_survives_the_file_that_hides_keys() -> None:
    one = service(secrets={"api_key": {"env": "K"}}, args={"log_level": "debug"})
    logging = json.loads(files(one, api_key=POISON)["logging.json"].text)
    assert logging["root"]["level"] == "DEBUG"
    assert logging["loggers"]["sglang.srt.entrypoints.engine"]["level"] == "WARNING"


def test_a_model_from_a_repository_is_not_downloaded_again_for_another_venv() -> None:
    assert "fedcba9876543210" not in environment(service(args={"model_path": "org/model"}))["HF_HOME"]
