"""Secrets stay out of what is shown."""

import base64
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.catalog import Argument, catalogue, versions
from sglang_fleet.masking import MASK, holds_secret, is_sensitive, looks_secret, mask
from sglang_fleet.render import yaml_text
from sglang_fleet.systemd_text import environment_line, exec_word

POISON = "p0ison-Value_42"
SECRET_FLAGS = {"--api-key", "--admin-api-key", "--ssl-keyfile-password", "--watermark-config"}

# A value begins, goes on and ends with the marker, so that no part of it can be left over unnoticed.
MARKER = "q7Q"
_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=12)
_near_misses = st.text("ab\"'\\,}] :=@/#-", max_size=10)
_quotable = st.one_of(_texts, _near_misses)
_plain = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="\"'\\"), max_size=10)


def _marked(parts: tuple[str, str]) -> str:
    return MARKER + MARKER.join(parts) + MARKER


anything = st.tuples(_quotable, _quotable).map(_marked)
one_word = st.tuples(_plain, _plain).map(_marked)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


QUOTED: dict[str, Callable[[str], str]] = {
    "systemd word": lambda value: f"ExecStart=/x --api-key {exec_word(value)} --port 1",
    "systemd word after =": lambda value: f"ExecStart=/x --api-key={exec_word(value)} --port 1",
    "systemd word, flag and all": lambda value: f"ExecStart=/x {exec_word('--api-key=' + value + ' ')} --port 1",
    "shell word": lambda value: f"python --api-key {shlex.quote(value)} --port 1",
    "shell word, flag and all": lambda value: f"python {shlex.quote('--api-key=' + value + ' ')} --port 1",
    "glued quotes": lambda value: f"ExecStart=/x --api-key a{exec_word(value + ' ')}b --port 1",
    "continued": lambda value: f"ExecStart=/x --api-key \\  \n  {exec_word(value)} \\\n  --port 1",
    "continued, CRLF": lambda value: f"ExecStart=/x --api-key \\␍\n  {exec_word(value)} \\␍\n  --port 1",
    "a comment between": lambda value: f"ExecStart=/x --api-key \\\n # old\n;\n  {exec_word(value)} \\\n  --port 1",
    "Environment=": lambda value: f"Environment=A=1 {exec_word('API_KEY=' + value + ' ')} B=2",
    "Environment=, inner quotes": lambda value: f"Environment=API_KEY={exec_word(value)} B=2",
    "environment file": lambda value: environment_line("REDIS_PWD", value),
    "environment file, several lines": lambda value: environment_line("REDIS_PWD", f"{value}\n{value} x\n{value}"),
    "environment file, no quotes": lambda value: f"A=1\nHF_TOKENS={value.strip()}\nB=2",
    "JSON": lambda value: json.dumps({"a": [1], "api_key": value, "b": 2}),
    "JSON, indented": lambda value: json.dumps({"x": {"api_keys": [value, value], "b": 2}}, indent=2),
    "JSON, non-ASCII": lambda value: json.dumps({"api_key": value}, ensure_ascii=False),
    "JSON in systemd's quotes": lambda value: f"--x {exec_word(json.dumps({'api_key': value, 'b': 1}))} --port 1",
    "JSON, compact": lambda value: f"--x {exec_word(_compact({'api_key': value, 'b': 1}))} --port 1",
    "JSON in JSON": lambda value: f"--x {exec_word(_compact({'a': _compact({'api_key': value, 'b': 1})}))} --port 1",
    "JSON in a shell's quotes": lambda value: f"--x {shlex.quote(json.dumps({'api_key': value, 'b': 1}))} --port 1",
    "Python": lambda value: repr({"a": 1, "api_key": value, "b": 2}),
    "YAML": lambda value: f"a: 1\n  api_key: {yaml_text(value)}\nb: 2",
    "YAML, in braces": lambda value: f"a: {{api_key: {json.dumps(value)}, b: 2}}",
    "YAML, no quotes": lambda value: f"a: 1\n- api_key: {value.strip()}\nb: 2",
    "header": lambda value: f"GET /\nAuthorization: Bearer {value}\nHost: x",
    "header in a line": lambda value: f"sent Authorization: Basic {value}",
    "header in quotes": lambda value: f"curl -H {exec_word('Authorization: Bearer ' + value)} http://x",
    "header in a shell's quotes": lambda value: f"curl -H {shlex.quote('Authorization: Bearer ' + value)} http://x",
    "header in JSON": lambda value: json.dumps({"h": {"authorization": f"Bearer {value}"}, "b": 1}),
}
WORDS: dict[str, Callable[[str], str]] = {
    "flag": lambda value: f"ExecStart=/x --api-key {value} --port 1",
    "flag with =": lambda value: f"ExecStart=/x --hf-token={value} --port 1",
    "glued": lambda value: f'ExecStart=/x --api-key a"{value} "b --port 1',
    "Environment=": lambda value: f"Environment=A=1 API_KEY_PROD={value} B=2",
    "URL": lambda value: f"index https://u:{value}@host/simple",
    "URL with a slash": lambda value: f"index https://u:p/{value}@host/simple",
    "bearer": lambda value: f"sent Bearer {value} to x",
    "YAML, in braces": lambda value: f"a: [{{x: 1, api_key: {value}, b: 2}}, 3]  # c",
    "keyword argument": lambda value: f"ServerArgs(port=1, api_key={value}, x=2)",
}


@pytest.mark.parametrize(
    "text",
    [
        f"ExecStart=/bin/python -m sglang.launch_server --api-key {POISON} --port 1",
        f"ExecStart=/bin/python -m sglang.launch_server --api-key={POISON} --port 1",
        f"    --api-key \\\n    {POISON} \\\n    --port 1",
        f"    --api-key \\  \n  # the old one\n    {POISON} \\\n    --port 1",
        f'    --admin-api-key "{POISON} with words"',
        f'    --admin-api-key a"with {POISON}"b',
        f"Environment=HF_TOKEN={POISON}",
        f'Environment="HF_TOKEN={POISON} more" "X=1"',
        f'Environment="HF_TOKEN=more {POISON}',
        f"OPENAI_API_KEY={POISON}",
        f"#OPENAI_API_KEY=more {POISON}",
        f"api_key: {POISON}",
        f"DB_PASSWORD='{POISON}'",
        f"SetCredential=hf:more {POISON}",
        f"index https://user:{POISON}@index.example/simple",
        f"index https://{POISON}@index.example/simple",
    ],
)
def test_a_value_that_looks_secret_is_hidden_though_nobody_named_it(text: str) -> None:
    assert POISON not in mask(text)
    assert MASK in mask(text)


@pytest.mark.parametrize("shape", QUOTED)
@given(value=anything)
def test_whatever_the_value_it_is_hidden_in_every_shape(shape: str, value: str) -> None:
    assert MARKER not in mask(QUOTED[shape](value))


@pytest.mark.parametrize("shape", WORDS)
@given(value=one_word)
def test_whatever_the_word_it_is_hidden_in_every_shape(shape: str, value: str) -> None:
    assert MARKER not in mask(WORDS[shape](value))


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "HF_TOKENS", "TOKEN_HF", "API_KEY", "API_KEY_PROD", "AWS_CREDENTIALS", "AWS_ACCESS_KEY_ID"),
        *("DB_PASS", "PASS", "REDIS_PWD", "BASIC_AUTH", "HTTP_AUTH", "PGPASSPHRASE", "PGPASSWORD", "HF_CREDS"),
        *("apiKey", "hfToken", "--api-key", "--api-keys", "--ssl-keyfile-password", "Authorization", "X-Api-Key"),
    ],
)
def test_a_telling_name_is_sensitive(name: str) -> None:
    assert is_sensitive(name)
    assert POISON not in mask(f"x {name}={POISON} y")


@pytest.mark.parametrize(
    "text",
    [
        "--max-total-tokens 4096",
        "--tokenizer-path /srv/models/x",
        "--disable-cuda-graph --port 30001",
        "--speculative-num-draft-tokens 4",
        "NCCL_P2P_LEVEL=5",
        "NCCL_IB_HCA=mlx5_0:1",
        "SSH_AUTH_SOCK=/run/agent",
        "TOKENIZERS_PARALLELISM=false",
        "API_KEY_FILE=/etc/key",
        "the key figures: tokens 12, monkey business",
        "--config /var/lib/sglang-fleet/services/k26/releases/0/secrets.yaml",
        "KeyError: 'model_type'",
        "launch_server.py: error: argument --api-key: expected one argument",
        '--json-model-override-args "{\\"num_key_value_heads\\": 8, \\"eos_token_id\\": [1, 2]}"',
        "Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, full token usage: 0.01, #full token: 7",
        "KV Cache is allocated. #tokens: 123456, K size: 1.2 GB",
        "max_total_num_tokens=8, chunked_prefill_size=2, max_prefill_tokens=16384",
        "git+https://github.com/sgl-project/sglang@v0.5.23",
        "ExecStart=/x --api-key \n[Install]",
        "Environment=API_KEY=\nExecStart=/x",
    ],
)
def test_what_is_no_secret_stays_readable(text: str) -> None:
    assert mask(text) == text


def _written(argument: Argument) -> str:
    value = {"int": "4096", "float": "0.5", "size": "8k", "json": '"{\\"a\\":\\"some value\\"}"'}.get(argument.kind)
    takes_none = argument.kind in ("flag", "switch")
    return argument.written if takes_none else f"{argument.written} {value or 'some-value'}"


@pytest.mark.parametrize("version", versions())
def test_of_sglangs_flags_only_the_secret_ones_are_hidden(version: str) -> None:
    known = catalogue(version)
    arguments = [argument.spelled(flag) for argument in known.arguments for flag in (argument.flag, *argument.aliases)]
    plain = [_written(argument) for argument in arguments if argument.written not in SECRET_FLAGS]
    unit = "[Service]\nExecStart=/x \\\n    " + " \\\n    ".join(plain) + "\n\n[Install]\n"
    assert mask(unit) == unit
    secret = {argument.written for argument in arguments if is_sensitive(argument.written)}
    takes_none = {argument.written for argument in arguments if argument.kind in ("flag", "switch")}
    assert secret - takes_none == {flag for flag in SECRET_FLAGS if known.find(flag)}


def test_a_unit_of_ours_stays_readable() -> None:
    unit = (Path(__file__).parent / "golden" / "sglang-k26.service").read_text()
    assert mask(unit) == unit


def test_what_stands_around_a_secret_stays_readable() -> None:
    text = 'ExecStart=/x --api-key "a b" --port 1\nEnvironment="HF_TOKEN=a b" "X=1"\n{"api_key": "s, t", "b": 2}\n'
    masked = (
        f'ExecStart=/x --api-key {MASK} --port 1\nEnvironment="HF_TOKEN={MASK}" "X=1"\n{{"api_key": {MASK}, "b": 2}}\n'
    )
    assert mask(text) == masked
    assert mask(masked) == masked


ISSUED = [
    "sk-proj-Ab3dEf6hIj9kLm2n",
    "sk-abcdefghijklmnop0123",
    "sk-live-abcdefghijklmnop",
    "sk_live_abcdefghijklmnop",
    "sk-ant-api03-Ab-d_f6hIj9kLm2n",
    "sk-or-v1-0123456789abcdef0123",
    "hf_abcdefghijklmnopqrst",
    "ghp_0123456789abcdefABCD",
    "gho_0123456789abcdefABCD",
    "ghs_0123456789abcdefABCD",
    "github_pat_11ABCDEFG0_abcdefghi",
    "glpat-abcdefghijklmnopqrst",
    "xoxb-123456789012-abcdefABCDEF",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA-0123_456789abcdef",
    "nvapi-abcdefghijk_mnop-rstu",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN",
]


@pytest.mark.parametrize(
    "shape",
    [
        *("{}", "environment: {{FOO: {}, B: 2}}", 'description: "key {}."', "GH={}", "--x {} --y", "a {}, b", "({})"),
        *('"a\\n{}"', "https://x/?q=%3D{}", "- {}\n", "a_{}", "got '{}'"),
    ],
)
@pytest.mark.parametrize("value", ISSUED)
def test_a_value_that_tells_of_itself_is_hidden_wherever_it_stands(value: str, shape: str) -> None:
    text = shape.format(value)
    assert mask(text) == shape.format(MASK)
    assert looks_secret(text)
    assert holds_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        *("HF_HUB_ENABLE_HF_TRANSFER=1", "hf_transfer", "hf_config", "hf_transformers_utils", "hf_" + "a" * 15),
        *("sk-learn", "sk-learn-intelex-patched-build", "sk-…", "sk-0123456789abcde", "task-0123456789abcdef0123"),
        *("ghp_short", "xoxo-love", "AKIASHORT", "nvapi-client", "eyJhbGciOiJIUzI1NiJ9", "eyJ.a.b", "github_pat_x"),
        "sha256:" + "0123456789abcdef" * 4,
        "releases/20261129T211036Z-0123456789ab",
        "moonshotai/Kimi-K2-Instruct-0905 Qwen/Qwen3-235B-A22B-Instruct-2507-FP8",
        "/disk-0123456789abcdef0123/models",
    ],
)
def test_what_only_begins_alike_stays_readable(text: str) -> None:
    assert mask(text) == text
    assert not holds_secret(text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("a: {password: leak, endpoint: x}", f"a: {{password: {MASK}, endpoint: x}}"),
        ("a: {password: leak it, endpoint: x}", f"a: {{password: {MASK}, endpoint: x}}"),
        ('a: {password: "l, k", endpoint: x}', f"a: {{password: {MASK}, endpoint: x}}"),
        ("a: {x: 1, password: leak}", f"a: {{x: 1, password: {MASK}}}"),
        ("a: [{x: {password: leak}}, 2]  # b", f"a: [{{x: {{password: {MASK}}}}}, 2]  # b"),
        ("a: {x: 1, password: leak,\n  y: 2}", f"a: {{x: 1, password: {MASK},\n  y: 2}}"),
    ],
)
def test_what_stands_beside_a_secret_in_braces_stays_as_it_is(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize("text", ["token=zzz", '{"password": "x"}', "a API_KEY=b c", "Authorization: Basic eA=="])
def test_a_text_holds_a_secret_behind_a_telling_name(text: str) -> None:
    assert holds_secret(text)
    assert not looks_secret(text)


@pytest.mark.parametrize(
    "text", ["token=$TOKEN", "token=/run/token", '{"password": null}', "--api-key", "token=", "max_tokens=3", "token=3"]
)
def test_a_text_that_only_says_where_a_secret_is_holds_none(text: str) -> None:
    assert not holds_secret(text)


@given(st.text(), st.text(), st.text(min_size=8))
def test_a_known_value_is_hidden_wherever_it_stands(before: str, after: str, value: str) -> None:
    assert value not in mask(before + value + after, [value]).replace(MASK, "") or value in before + after


@given(anything)
def test_a_known_value_is_hidden_however_it_is_written(value: str) -> None:
    content = value.encode()
    written = [
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        repr(value),
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
        shlex.quote(value),
        exec_word(value),
        exec_word(f"{value} "),
        exec_word(json.dumps(value)),
        environment_line("X", value),
        yaml_text(value),
    ]
    assert MARKER not in mask("\n".join(f"see {text} end" for text in written), [value])
    for encoded in (base64.b64encode(content), base64.urlsafe_b64encode(content)):
        text = encoded.decode().rstrip("=")
        assert text not in mask(f"see {text} end", [value])
