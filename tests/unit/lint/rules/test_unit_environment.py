"""What a server finds in its environment."""

import pytest

from tests.unit.lint.unit_views import said, unit_view

VENV = "ExecStart=/opt/v/bin/python -m sglang.launch_server --model-path /models/k2"
CUDA = "/usr/local/cuda-13.0"


@pytest.mark.parametrize(
    ("rule", "unit", "environment", "found"),
    [
        ("SGL630", VENV, {"PATH": f"/opt/v/bin:{CUDA}/bin:/usr/bin", "CUDA_HOME": CUDA}, False),
        ("SGL630", VENV, {"PATH": f"/opt/v/bin:{CUDA}/bin:/usr/bin"}, False),
        ("SGL630", VENV, {"PATH": f"{CUDA}/bin:/opt/v/bin"}, True),
        ("SGL630", VENV, {"PATH": "/opt/v/bin:/usr/bin"}, True),
        ("SGL630", VENV, {"PATH": "/opt/v/bin:/usr/local/cuda-12.8/bin", "CUDA_HOME": CUDA}, True),
        ("SGL630", VENV, {}, True),
        ("SGL630", "ExecStart=/usr/bin/python3 -m sglang", {"PATH": f"{CUDA}/bin:/usr/bin"}, False),
        ("SGL631", VENV, {}, True),
        ("SGL631", VENV, {"CUDA_HOME": "/usr/local/cuda"}, True),
        ("SGL631", VENV, {"CUDA_HOME": "/usr/local/cuda/"}, True),
        ("SGL631", VENV, {"CUDA_HOME": CUDA}, False),
        ("SGL632", VENV, {}, True),
        ("SGL632", f"{VENV}\nUser=sglang", {}, False),
        ("SGL632", VENV, {"HOME": "/root"}, False),
        ("SGL633", VENV, {}, True),
        ("SGL633", VENV, {"TRITON_CACHE_DIR": "/var/cache/t"}, False),
        ("SGL634", VENV, {}, True),
        ("SGL634", VENV, {"MAX_JOBS": "4"}, False),
        ("SGL635", VENV, {}, True),
        ("SGL635", VENV, {"HF_HUB_OFFLINE": "0"}, True),
        ("SGL635", VENV, {"HF_HUB_OFFLINE": "1"}, False),
        ("SGL635", "ExecStart=/opt/v/bin/python --model-path=org/model", {}, False),
        ("SGL636", f"{VENV} --api-key sk-12345", {}, True),
        ("SGL636", f"{VENV} --api-key=sk-12345", {}, True),
        ("SGL636", f"{VENV} --max-total-tokens 100", {}, False),
        ("SGL636", VENV + '\nEnvironment=A=1 "HF_TOKEN=hf_12345"', {}, True),
        ("SGL636", f"{VENV}\nEnvironment=HF_TOKEN=", {}, False),
        ("SGL636", VENV, {"HF_TOKEN": "hf_12345"}, False),  # from a file, which others need not see
    ],
)
def test_environment(rule: str, unit: str, environment: dict[str, str], found: bool) -> None:  # noqa: FBT001 - a case
    found_there = said(rule, unit_view(f"[Service]\n{unit}", environment))
    assert len(found_there) == found
    assert "12345" not in "".join(found_there)
