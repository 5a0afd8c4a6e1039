"""Secrets stay out of what is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.masking import MASK, mask

POISON = "p0ison-Value_42"


@pytest.mark.parametrize(
    "text",
    [
        f"ExecStart=/bin/python -m sglang.launch_server --api-key {POISON} --port 1",
        f"ExecStart=/bin/python -m sglang.launch_server --api-key={POISON} --port 1",
        f"    --api-key \\\n    {POISON} \\\n    --port 1",
        f'    --admin-api-key "{POISON} with words"',
        f"Environment=HF_TOKEN={POISON}",
        f'Environment="HF_TOKEN={POISON} more" "X=1"',
        f"OPENAI_API_KEY={POISON}",
        f"api_key: {POISON}",
        f"DB_PASSWORD='{POISON}'",
        f"index https://user:{POISON}@index.example/simple",
    ],
)
def test_a_value_that_looks_secret_is_hidden_though_nobody_named_it(text: str) -> None:
    assert POISON not in mask(text)
    assert MASK in mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "--max-total-tokens 4096",
        "--tokenizer-path /srv/models/x",
        "--disable-cuda-graph --port 30001",
        "NCCL_P2P_LEVEL=5",
        "the key figures: tokens 12, monkey business",
        "--config /var/lib/sglang-fleet/services/k26/releases/0/secrets.yaml",
    ],
)
def test_what_is_no_secret_stays_readable(text: str) -> None:
    assert mask(text) == text


@given(st.text(), st.text(), st.text(min_size=8))
def test_a_known_value_is_hidden_wherever_it_stands(before: str, after: str, value: str) -> None:
    assert value not in mask(before + value + after, [value]).replace(MASK, "") or value in before + after
