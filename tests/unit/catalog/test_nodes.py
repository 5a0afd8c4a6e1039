"""The command lines of the ranks of a replica, as every release in the catalogue reads them."""

from __future__ import annotations

import pytest

from sglang_fleet.catalog import catalogue, versions
from sglang_fleet.catalog.commandline import read
from sglang_fleet.render import command_words
from tests.nodes import ADDRESSES, meeting, ranks

WITHOUT = {"model_path": "/m", "port": 30001, "host": "0.0.0.0", "tp_size": 8, "pp_size": 2}  # noqa: S104  # a listener


@pytest.mark.parametrize("version", versions())
@pytest.mark.parametrize("address", ADDRESSES)
def test_each_rank_is_told_where_it_is_and_where_to_meet(version: str, address: str) -> None:
    known = catalogue(version)
    for rank, service in enumerate(ranks(WITHOUT, address=address)):
        _, *options = command_words(service, version=version, venv="/venv", release_folder="/release")
        line = read([word for option in options for word in option], known)
        assert line.problems == ()
        given = {one.argument.destination: one.parsed for one in line.given}
        assert given == {
            **{argument.destination: WITHOUT[name] for name in WITHOUT if (argument := known.find(name))},
            "nnodes": 2,
            "node_rank": rank,
            "dist_init_addr": meeting(address),
        }
