"""A server of SGLang itself, started with the words we render."""

from sglang_fleet.catalog import catalogue
from tests.real.conftest import Serve

ARGS: dict[str, object] = {
    "served_model_name": "tiny",
    "pp_size": 1,
    "max_running_requests": 4,
    "schedule_conservativeness": 0.5,
    "bucket_e2e_request_latency": [0.5, 1, 2],
    "enable_metrics": True,
    "json_model_override_args": {"max_position_embeddings": 1024},
}


def test_it_serves_and_reports_the_arguments_it_was_given(real_server: Serve) -> None:
    known = catalogue("0.5.23")
    words = []
    for name, value in ARGS.items():
        argument = known.find(name)
        assert argument is not None
        assert argument.check(name, value) is None
        words += argument.render(value)
    with real_server(words) as server:
        info = server.get("/server_info")
        assert {name: info[name] for name in ARGS} == ARGS | {
            "json_model_override_args": '{"max_position_embeddings":1024}'
        }
        assert info["version"] == known.version
        answer = server.post(
            "/v1/completions", {"model": "tiny", "prompt": "w3 w4", "max_tokens": 4, "ignore_eos": True}
        )
        assert isinstance(answer["usage"], dict)
        assert answer["usage"]["completion_tokens"] == 4
    assert server.process.returncode == 0
