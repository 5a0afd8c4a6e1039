"""The main job with SGLang itself: deploy, upgrade and go back, on two hosts. A change: test_anywhere.py."""

import pytest

from tests.real.hosts.fleet import ANSWER, NEWEST, OLDER, ONE_RANK, ONE_STAGE, RealFleet

pytestmark = pytest.mark.lab_only("they need two releases, and the model whose answers are known")


def test_two_hosts_get_a_pipeline_of_two_stages_that_answers_at_their_addresses(fleet: RealFleet) -> None:
    done = fleet.deploy()
    assert done.status == 0, done.text
    for host in fleet.hosts:
        assert fleet.complete(host) == ANSWER
        assert fleet.ask(host, "/v1/models", key=None)[0] == 401
        info = fleet.server_info(host)
        assert (info["version"], info["pp_size"], info["pp_async_batch_depth"]) == (NEWEST, 2, 1)
        assert fleet.proven(host)[-1] == fleet.release(host)
    again = fleet.deploy()
    assert again.status == 0, again.text
    assert "nothing to do on h1, h2" in again.text


def test_an_upgrade_and_a_rollback_change_the_version_that_the_server_itself_reports(fleet: RealFleet) -> None:
    fleet.use("h1")
    host = fleet.hosts[0]

    def serves(version: str) -> str:
        assert fleet.complete(host) == ANSWER
        assert fleet.server_info(host)["version"] == version
        release = fleet.release(host)
        assert release
        assert fleet.proven(host)[-1] == release
        return release

    fleet.write(fleet.settings(version=OLDER, args=ONE_STAGE, environment=ONE_RANK))
    done = fleet.deploy()
    assert done.status == 0, done.text
    older = serves(OLDER)
    fleet.write(fleet.settings(version=NEWEST, args=ONE_STAGE, environment=ONE_RANK))
    done = fleet.deploy()
    assert done.status == 0, done.text
    assert serves(NEWEST) != older
    back = fleet.rollback()
    assert back.status == 0, back.text
    assert "installing" not in back.text
    assert serves(OLDER) == older
