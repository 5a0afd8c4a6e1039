"""How a release is measured, and which releases cannot be."""

import pytest

from sglang_fleet.host.bench.target import target_of
from sglang_fleet.host.errors import HostError
from tests.unit.host.bench.staged import KEY, Staged


def test_the_key_is_in_the_environment_alone(staged: Staged) -> None:
    staged.write()
    target = target_of(staged.layout, "r1")
    assert target.variables("/run/x")["OPENAI_API_KEY"] == KEY
    assert KEY not in " ".join(target.words())
    assert KEY not in repr(target)


def test_the_server_is_asked_where_it_listens_with_the_models_own_tokenizer(staged: Staged) -> None:
    staged.write()
    target = target_of(staged.layout, "r1")
    assert (target.url, target.tokenizer, target.version) == ("http://127.0.0.1:30001", "/models/k26", "0.5.23")
    staged.write(args={"tokenizer_path": "/models/other"}, host="::")
    target = target_of(staged.layout, "r1")
    assert (target.url, target.tokenizer) == ("http://[::1]:30001", "/models/other")


def test_it_sees_no_gpu_no_proxy_and_no_release_of_its_own(staged: Staged) -> None:
    staged.write(
        environment='SGLANG_USE_CPU_ENGINE="1"\nCUDA_VISIBLE_DEVICES="0,1"\nHOME="/var/lib/sglang/k26"\n'
        'http_proxy="http://proxy:1"\nHTTPS_PROXY="http://proxy:1"\nSGLANG_FLEET_RELEASE="r1"\nAPI_KEY="x"\n'
    )
    variables = target_of(staged.layout, "r1").variables("/run/x")
    assert variables["SGLANG_USE_CPU_ENGINE"] == "1"
    assert variables["CUDA_VISIBLE_DEVICES"] == ""
    assert {variables[name] for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")} == {"/run/x"}
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert not {"http_proxy", "HTTPS_PROXY", "SGLANG_FLEET_RELEASE", "API_KEY"} & set(variables)
    assert variables["no_proxy"] == "*"


def test_a_server_without_a_key_is_asked_without_one(staged: Staged) -> None:
    staged.secret = ""
    staged.write()
    assert "OPENAI_API_KEY" not in target_of(staged.layout, "r1").variables("/run/x")


def test_a_later_sglang_has_it_elsewhere(staged: Staged) -> None:
    staged.module = "benchmark/serving"
    (staged.layout.state / "venvs/v1/lib/python3.11/site-packages/sglang/benchmark").mkdir(parents=True)
    staged.write()
    assert target_of(staged.layout, "r1").module == "sglang.benchmark.serving"


def test_without_datasets_it_says_what_to_add_and_where(staged: Staged) -> None:
    staged.has_datasets = False
    staged.write()
    with pytest.raises(HostError, match="has no package `datasets`") as raised:
        target_of(staged.layout, "r1")
    assert "sglang.requirements" in raised.value.fix


def test_an_sglang_that_has_no_bench_serving_is_named(staged: Staged) -> None:
    staged.module = "something"
    staged.write()
    with pytest.raises(HostError, match=r"has no sglang\.bench_serving"):
        target_of(staged.layout, "r1")


def test_only_rank_0_of_a_replica_is_measured(staged: Staged) -> None:
    staged.write(replica={"rank": 0, "nodes": 2, "hosts": ["h1", "h2"], "id": "x"})
    assert target_of(staged.layout, "r1").url
    staged.write(replica={"rank": 1, "nodes": 2, "hosts": ["h1", "h2"], "id": "x"})
    with pytest.raises(HostError, match="rank 1 of a replica") as raised:
        target_of(staged.layout, "r1")
    assert raised.value.fix == "measure h1"


@pytest.mark.parametrize(
    "args", [{"ssl_certfile": "/c"}, {"skip_tokenizer_init": True}, {"is_embedding": True}], ids="-".join
)
def test_what_bench_serving_cannot_ask_is_refused(staged: Staged, args: dict[str, object]) -> None:
    staged.write(args=args)
    with pytest.raises(HostError, match=r"sglang\.bench_serving"):
        target_of(staged.layout, "r1")


def test_a_release_that_is_not_here_is_refused(staged: Staged) -> None:
    with pytest.raises(HostError, match="r1 is not complete on this host"):
        target_of(staged.layout, "r1")
