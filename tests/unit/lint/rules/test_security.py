"""Who can reach a server, and what they could do there."""

from typing import Any

import pytest

from tests.unit.lint.views import ask, view

KEY = {"api_key": {"env": "KEY"}}
ADMIN = {**KEY, "admin_api_key": {"env": "ADMIN"}}
EVERYWHERE = "0.0.0.0"  # noqa: S104 - what the rules are about
ISSUED = "sk-proj-Ab3dEf6hIj9kLm2n"
LOGIT = {"enable_custom_logit_processor": True}
HUB = {"model_path": "moonshotai/Kimi-K2", "trust_remote_code": True}


@pytest.mark.parametrize(
    ("rule", "args", "service", "key"),
    [
        ("SGL701", {"host": EVERYWHERE}, {}, "args.host"),
        ("SGL701", {"host": "::"}, {}, "args.host"),
        ("SGL701", {"host": "10.1.2.3"}, {"secrets": {"HF_TOKEN": {"env": "X"}}}, "args.host"),
        ("SGL701", {"host": "127.evil.example"}, {}, "args.host"),
        ("SGL701", {"host": EVERYWHERE}, {"secrets": KEY}, None),
        ("SGL701", {"host": "127.0.0.1"}, {}, None),
        ("SGL701", {"host": "::1"}, {}, None),
        ("SGL701", {"host": "localhost"}, {}, None),
        ("SGL701", {}, {}, None),  # SGLang's own default
        ("SGL702", HUB, {}, "args.trust_remote_code"),
        ("SGL702", {**HUB, "revision": "main"}, {}, "args.trust_remote_code"),
        ("SGL702", {**HUB, "revision": "0" * 40}, {}, None),
        ("SGL702", {**HUB, "trust_remote_code": False}, {}, None),
        ("SGL702", {**HUB, "model_path": "/models/k2"}, {}, None),
        ("SGL703", {}, {"environment": {"HF_TOKEN": "hf_abcdef"}}, "environment.HF_TOKEN"),
        ("SGL703", {}, {"environment": {"AWS_SECRET_ACCESS_KEY": "x"}}, "environment.AWS_SECRET_ACCESS_KEY"),
        ("SGL703", {}, {"extra_args": ["--my-token", "abc"]}, "extra_args"),
        ("SGL703", {}, {"extra_args": ["--my-token=abc"]}, "extra_args"),
        ("SGL703", {}, {"extra_args": ["--my-token", "--other"]}, None),
        ("SGL703", {}, {"extra_args": ["--max-tokens", "abc"]}, None),
        ("SGL703", {}, {"environment": {"HTTPS_PROXY": "http://u:pw@proxy:3128"}}, "environment.HTTPS_PROXY"),
        ("SGL703", {}, {"environment": {"DATABASE_URL": "postgres://u:p:w@h/db"}}, "environment.DATABASE_URL"),
        ("SGL703", {}, {"environment": {"OTEL_HEADERS": "a=Bearer abcdefgh1"}}, "environment.OTEL_HEADERS"),
        ("SGL703", {"otlp_traces_endpoint": "http://u:pw@h:4317"}, {}, "args.otlp_traces_endpoint"),
        ("SGL703", {}, {"extra_args": ["--otlp-traces-endpoint", "http://u:pw@h:4317"]}, "extra_args"),
        ("SGL703", {}, {"environment": {"HTTPS_PROXY": "http://proxy:3128/a@b"}}, None),
        ("SGL703", {}, {"environment": {"HTTPS_PROXY": "http://user@proxy:3128"}}, None),
        ("SGL703", {}, {"environment": {"HTTPS_PROXY": "http://u:${PASSWORD}@proxy"}}, None),
        ("SGL703", {}, {"environment": {"NOTE": "the bearer of it"}}, None),
        ("SGL703", {}, {"environment": {"HF_TOKEN_PATH": "/run/token"}}, None),
        ("SGL703", {}, {"environment": {"HF_TOKEN": "/run/token"}}, None),
        ("SGL703", {}, {"environment": {"HF_TOKEN": ""}}, None),
        ("SGL703", {}, {"environment": {"SGLANG_MAX_NEW_TOKENS": "12"}}, None),
        ("SGL703", {}, {"environment": {"TOKENIZERS_PARALLELISM": "false"}}, None),
        ("SGL703", {}, {"secrets": {"HF_TOKEN": {"env": "X"}}}, None),
        ("SGL703", {}, {"environment": {"FOO": ISSUED}}, "environment.FOO"),
        ("SGL703", {}, {"environment": {"WANDB": "token=zzz"}}, "environment.WANDB"),
        ("SGL703", {}, {"environment": {"WANDB": "token=$TOKEN"}}, None),
        ("SGL703", {}, {"environment": {"WANDB": "token=/run/token"}}, None),
        ("SGL703", {}, {"environment": {"FOO": "hf_transfer"}}, None),
        ("SGL703", {"kv_events_config": {"password": "x"}}, {}, "args.kv_events_config"),
        ("SGL703", {"kv_events_config": {"a": [{"password": "x"}]}}, {}, "args.kv_events_config"),
        ("SGL703", {"kv_events_config": '{"password": "x"}'}, {}, "args.kv_events_config"),
        ("SGL703", {"kv_events_config": {"password": "$PASSWORD", "topic": "x"}}, {}, None),
        ("SGL703", {"json_model_override_args": {"mask_token": "[MASK]", "eos_token_id": [1, 2]}}, {}, None),
        ("SGL703", {"served_model_name": ISSUED}, {}, "args.served_model_name"),
        ("SGL703", {}, {"extra_args": ["--label", ISSUED]}, "extra_args"),
        ("SGL703", {}, {"extra_args": ["--label", "password=x"]}, "extra_args"),
        ("SGL703", {}, {"description": f"key {ISSUED}"}, "description"),
        ("SGL703", {}, {"description": "http://u:pw@host"}, "description"),
        ("SGL703", {}, {"description": "the key: patience"}, None),
        ("SGL704", {}, {"user": "root"}, "user"),
        ("SGL704", {}, {}, None),
        ("SGL705", {"log_requests": True}, {}, "args.log_requests"),  # level 2 when not set
        ("SGL705", {"log_requests": True, "log_requests_level": 3}, {}, "args.log_requests"),
        ("SGL705", {"log_requests": True, "log_requests_level": 1}, {}, None),
        ("SGL705", {"log_requests_level": 3}, {}, None),
        ("SGL706", {"encoder_only": True}, {"version": "0.5.9"}, "args.encoder_only"),
        ("SGL706", {"encoder_only": True}, {}, None),
        ("SGL706", {}, {"version": "0.5.9"}, None),
        ("SGL707", {**LOGIT, "host": EVERYWHERE}, {}, "args.enable_custom_logit_processor"),
        ("SGL707", LOGIT, {}, None),
        ("SGL707", {"host": EVERYWHERE}, {}, None),
        ("SGL708", {"grpc_port": 40000}, {"secrets": KEY}, "args.grpc_port"),
        ("SGL708", {"grpc_port": 40000}, {}, None),
        ("SGL708", {}, {"secrets": KEY}, None),
        ("SGL709", {"host": EVERYWHERE}, {"secrets": KEY}, "secrets.api_key"),
        ("SGL709", {"host": EVERYWHERE}, {"secrets": ADMIN}, None),
        ("SGL709", {}, {"secrets": KEY}, None),
        ("SGL709", {"host": EVERYWHERE}, {}, None),
    ],
)  # fmt: skip
def test_security(rule: str, args: dict[str, Any], service: dict[str, Any], key: str | None) -> None:
    found = ask(rule, view(args, **service))
    assert [one.key for one in found] == ([f"services.k26.{key}"] if key else [])


def test_a_secret_is_not_repeated() -> None:
    environment = {"HF_TOKEN": "hf_abcdef", "HTTPS_PROXY": "http://u:abcdef@proxy"}
    one = view(environment=environment, extra_args=["--my-token=abcdef", "--to=http://u:abcdef@proxy"])
    assert len(ask("SGL703", one)) == 4
    assert not any("abcdef" in f"{found.message} {found.fix}" for found in ask("SGL703", one))


def test_what_to_remove_is_named() -> None:
    (found,) = ask("SGL704", view({"model_path": "/root/models/k26"}, user="root"))
    assert found.fix == "move the model out of /root, then remove `user: root`"
    (found,) = ask("SGL704", view(user="root"))
    assert found.fix == "remove `user: root`"
