import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.catalog import versions
from sglang_fleet.lint.rules.derived import (
    SPAN_ALL,
    algorithm,
    architecture,
    attention_replicas,
    attention_tensor_parallel,
    capability,
    expert_parallel,
    is_on,
    is_repository,
    is_sparse_deepseek,
    micro_batch_limit,
    model_class,
    pages,
    whole_replicas,
)
from sglang_fleet.models import ModelFacts
from tests.unit.lint.views import host, view


@given(tensor=st.integers(1, 64), groups=st.integers(1, 64))
def test_the_gpus_of_one_group_times_the_groups_are_all(tensor: int, groups: int) -> None:
    one = view({"tp_size": tensor, "attn_dp_size": groups})
    assert attention_tensor_parallel(one) * groups == (0 if tensor % groups else tensor)


@given(groups=st.integers(2, 64))
def test_both_spellings_of_dp_attention_mean_the_same(groups: int) -> None:
    old = view({"tp_size": 64, "dp_size": groups, "enable_dp_attention": True})
    new = view({"tp_size": 64, "attn_dp_size": groups})
    assert attention_replicas(old) == attention_replicas(new) == groups
    assert whole_replicas(old) == whole_replicas(new) == 1


def test_dp_size_alone_is_whole_copies() -> None:
    one = view({"dp_size": 4})
    assert (attention_replicas(one), whole_replicas(one)) == (1, 4)


@pytest.mark.parametrize("version", ["0.5.5", "0.5.9", "0.5.20", "0.5.23"])
def test_names_are_found_in_old_and_new_releases(version: str) -> None:
    one = view({"tp_size": 8, "pp_size": 2, "max_running_requests": 64}, version=version)
    assert (attention_tensor_parallel(one), micro_batch_limit(one)) == (8, 32)


@given(running=st.integers(1, 1000), stages=st.integers(1, 16))
def test_a_batch_of_the_pipeline_holds_at_least_one_request(running: int, stages: int) -> None:
    limit = micro_batch_limit(view({"pp_size": stages, "max_running_requests": running}))
    assert limit is not None
    assert limit >= 1
    assert limit * stages <= max(running, stages)


@pytest.mark.parametrize(
    ("cap", "numbers", "name"), [("12.0", (12, 0), "SM120"), ("8.9", (8, 9), "SM89"), ("", None, None)]
)
def test_a_compute_capability(cap: str, numbers: tuple[int, int] | None, name: str | None) -> None:
    one = view(state=host(compute_cap=cap))
    assert (capability(one), architecture(one)) == (numbers, name)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("Qwen/Qwen3-8B", True),
        ("/models/x", False),
        ("./models/x", False),
        ("gpt2", False),
        ("~/m", False),
        ("a/b/c", False),
    ],
)
def test_a_name_on_a_hub(path: str, expected: bool) -> None:  # noqa: FBT001  # the case's own value
    assert is_repository(view({"model_path": path})) is expected


@pytest.mark.parametrize(("text", "expected"), [("1", True), ("True", True), ("0", False), ("", False), (None, False)])
def test_a_switch(text: str | None, expected: bool) -> None:  # noqa: FBT001  # as above
    assert is_on(text) is expected


@pytest.mark.parametrize("exchange", sorted(SPAN_ALL))
def test_an_exchange_spreads_experts_over_all_gpus(exchange: str) -> None:
    assert expert_parallel(view({"tp_size": 8, "ep_size": 2, "moe_a2a_backend": exchange})) == 8


def test_without_an_exchange_the_written_number_counts() -> None:
    assert expert_parallel(view({"tp_size": 8, "ep_size": 2})) == 2
    assert expert_parallel(view({"tp_size": 8, "ep_size": 2, "moe_a2a_backend": "none"})) == 2
    assert expert_parallel(view({"tp_size": 8})) == 1


def test_the_algorithm_is_read_in_any_case() -> None:
    assert (algorithm(view({"speculative_algorithm": "eagle"})), algorithm(view())) == ("EAGLE", "")


def test_the_class_of_a_model_is_the_first_that_it_names() -> None:
    assert model_class(view(model=ModelFacts(architectures=("A", "B")))) == "A"
    assert model_class(view(model=ModelFacts())) is None
    assert model_class(view()) is None


def test_sparse_attention_shows_by_class_and_indexer() -> None:
    sparse = ModelFacts(architectures=("DeepseekV32ForCausalLM",), index_topk=2048)
    assert is_sparse_deepseek(view(model=sparse))
    assert not is_sparse_deepseek(view(model=ModelFacts(architectures=("DeepseekV3ForCausalLM",))))
    assert not is_sparse_deepseek(view(model=ModelFacts(architectures=("OtherForCausalLM",), index_topk=2048)))


@pytest.mark.parametrize("version", versions())
@given(page=st.sampled_from([None, 1, 16, 32, 64, 128, 256]))
def test_a_backend_that_decides_the_page_size_decides_it_again_alike(version: str, page: int | None) -> None:
    for backend in ("flashmla", "trtllm_mla", "trtllm_mha", "tokenspeed_mla"):
        found = pages(view({"attention_backend": backend, "page_size": page}, version=version))
        assert found is not None
        assert pages(view({"attention_backend": backend, "page_size": found[1]}, version=version)) == found


def test_other_backends_leave_the_page_size_alone() -> None:
    assert pages(view({"attention_backend": "triton", "page_size": 7})) is None
    assert pages(view({"prefill_attention_backend": "flashmla"})) is None
