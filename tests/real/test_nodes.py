"""The command line of each rank of a replica, as SGLang's own parser reads it."""

import pytest

from sglang_fleet.catalog import catalogue
from sglang_fleet.catalog.commandline import read
from sglang_fleet.effective import effective_arguments
from sglang_fleet.render import command_words
from tests.nodes import ADDRESSES, meeting, ranks
from tests.real.real_parser import RealParser

ARGS = {"model_path": "m", "tp_size": 8, "pp_size": 2, "context_length": 32768, "trust_remote_code": True}


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("nodes", [2, 4])
def test_each_rank_is_told_where_it_is_and_where_to_meet(real: RealParser, address: str, nodes: int) -> None:
    services = ranks(ARGS, address=address, nodes=nodes)
    lines = [
        [word for option in options[1:] for word in option]
        for service in services
        for options in [command_words(service, version=real.version, venv="/venv", release_folder="/release")]
    ]
    for rank, (service, words, outcome) in enumerate(zip(services, lines, real.parse(lines), strict=True)):
        assert isinstance(outcome, dict), outcome
        theirs = real.plain | outcome
        assert (theirs["nnodes"], theirs["node_rank"], theirs["dist_init_addr"]) == (nodes, rank, meeting(address))
        # What the health gate holds the running server against is what the parser made of it.
        wanted = effective_arguments(service, version=real.version)
        assert wanted == {name: theirs[name] for name in wanted}
        assert len(wanted) == len(service.args.ordered())
        assert read(words, catalogue(real.version)).problems == ()
