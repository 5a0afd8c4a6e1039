"""The proofs of the health gate, asked of SGLang itself: a healthy server gives every one of them."""

from urllib.parse import urlsplit

from sglang_fleet.host.activation.proofs.arguments import Arguments
from sglang_fleet.host.activation.proofs.completion import Completion
from sglang_fleet.host.activation.proofs.counters import Counters
from sglang_fleet.host.activation.proofs.golden import Golden, GoldenSpec
from sglang_fleet.host.activation.proofs.records import Record
from sglang_fleet.host.activation.proofs.stamina import REQUESTS, Stamina
from sglang_fleet.host.activation.proofs.throughput import Throughput, ThroughputSpec
from sglang_fleet.host.machine.answers import REFUTED, Proof, Question, ask
from tests.real.conftest import Serve

ASKED = {
    "served_model_name": "tiny",
    "max_running_requests": 4,
    "chunked_prefill_size": 512,
    "dtype": "auto",
    "pp_size": 1,
    "enable_metrics": True,
    "enable_mixed_chunk": False,
    "json_model_override_args": {"max_position_embeddings": 1024},
}
WORDS = (
    *("--served-model-name", "tiny", "--max-running-requests", "4", "--chunked-prefill-size", "512", "--dtype", "auto"),
    *("--enable-metrics", "--api-key", "hush", "--json-model-override-args", '{"max_position_embeddings": 1024}'),
)
GOLDEN = GoldenSpec(("w3 w4 w5", "w9 w8"), tolerance=1.0, tokens=8)
RATE = ThroughputSpec(at_least=0.2, requests=4, tokens=16)


def test_a_healthy_server_gives_every_proof(real_server: Serve) -> None:
    with real_server(WORDS) as server:
        question = Question(("127.0.0.1",), urlsplit(server.url).port or 0, api_key="hush")

        def given(proof: Proof) -> Record:
            answer = proof(question)
            assert answer.good, answer
            return Record.of("r1", at="", model="", found=answer.found)

        assert ask(question).good
        given(Completion(60.0))
        given(Counters(60.0))
        given(Arguments(60.0, ASKED))
        given(Golden(60.0, GOLDEN, given(Golden(60.0, GOLDEN, None))))
        given(Throughput(200.0, RATE, given(Throughput(200.0, RATE, None))))
        given(Stamina(120.0, REQUESTS))
        assert "counted in /metrics" in Counters(60.0)(question).text
        wrong = Arguments(60.0, {"pp_size": 8, "tp_size": 1})(question)
        assert wrong.kind == REFUTED
        assert wrong.text.endswith("disagrees with the arguments: pp_size is 1, asked for 8")
