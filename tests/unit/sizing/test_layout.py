import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.sizing import lay_out
from sglang_fleet.sizing.layout import stages


def sizes(layers: int, count: int, **more: str) -> list[int]:
    version = more.pop("version", "")
    return [len(stage) for stage in stages(layers, count, environment=more, version=version)]


def test_left_over_layers_go_to_the_last_stages_one_each() -> None:
    # sglang 0.5.23, get_pp_indices: Kimi K2 over eight stages.
    assert sizes(61, 8) == [7, 7, 7, 8, 8, 8, 8, 8]


def test_releases_before_0_5_6_gave_them_all_to_the_last_stage() -> None:
    assert sizes(61, 8, version="0.5.5.post3") == [7, 7, 7, 7, 7, 7, 7, 12]
    assert sizes(61, 8, version="0.5.6") == sizes(61, 8)


@pytest.mark.parametrize(
    ("written", "expected"),
    [("30,31", [30, 31]), ("31, 30", [31, 30]), ("30,30", [30, 31]), ("61", [30, 31]), ("a,b", [30, 31])],
)
def test_a_written_partition_counts_where_it_adds_up(written: str, expected: list[int]) -> None:
    assert sizes(61, 2, SGLANG_PP_LAYER_PARTITION=written) == expected


@given(layers=st.integers(0, 300), count=st.integers(1, 64), version=st.sampled_from(["", "0.5.5", "0.5.23"]))
def test_every_layer_is_on_exactly_one_stage(layers: int, count: int, version: str) -> None:
    found = stages(layers, count, version=version)
    assert [layer for stage in found for layer in stage] == list(range(layers))
    assert len(found) == count


def test_data_parallel_attention_is_told_from_replicas() -> None:
    replicas = lay_out(61, {"tp_size": 4, "dp_size": 2})
    assert (replicas.replicas, replicas.schedulers, replicas.attention, replicas.gpus) == (2, 1, 4, 4)
    attention = lay_out(61, {"tp_size": 8, "dp_size": 4, "enable_dp_attention": True})
    assert (attention.replicas, attention.schedulers, attention.attention, attention.gpus) == (1, 4, 2, 8)
    assert attention == lay_out(61, {"tp_size": 8, "attn_dp_size": 4})
    assert (attention.embedding, attention.head, attention.dense) == (1, 8, 8)


def test_older_names_of_arguments_mean_the_same() -> None:
    older = {"tensor_parallel_size": 2, "pipeline_parallel_size": 4, "data_parallel_size": 2}
    assert lay_out(61, older) == lay_out(61, {"tp_size": 2, "pp_size": 4, "dp_size": 2})


@pytest.mark.parametrize("value", [0, -1, "8", True, None, 2.5])
def test_what_is_no_count_is_left_to_lint(value: object) -> None:
    assert lay_out(61, {"tp_size": value, "pp_size": value}) == lay_out(61, {})
