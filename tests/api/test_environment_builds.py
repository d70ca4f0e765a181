"""Builds of environments in the API: ordering them, looking at them and their logs, and canceling them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from environments.curated import CURATED
from jobs.builds import build_lifecycle
from jobs.models import EnvironmentBuild
from tests.api.asking import refused
from tests.environments.locks import failed, locked, locked_curated
from tests.jobs.builders import Played
from tests.jobs.builders import node as enrolled
from tests.jobs.builds.ordered import completed
from tests.people import api_client, make_person
from workspaces.access import Principal
from workspaces.states import Role

ADDRESS = "/api/v1/environments/mine/versions/1/"


@pytest.fixture
def alpha(db: None) -> Played:
    return Played(enrolled("alpha"))


def order(api: Client, address: str = ADDRESS, **body: Any) -> Any:
    return api.post(f"{address}build/", body, "application/json")


def test_an_ordered_build_is_listed_and_on_the_version(api: Client, who: Principal, alpha: Played) -> None:
    locked(who)
    answer = order(api)
    assert answer.status_code == 202, answer.content
    (build,) = answer.json()
    assert (build["state"], build["node"], build["created_by"]) == ("queued", "alpha", "carl")
    # The same again, also from somebody else, is the same build.
    other = api_client(make_person("olga", Role.CONTRIBUTOR))
    assert order(other, nodes=["alpha"]).json() == [build]
    assert api.get(f"{ADDRESS}builds/").json() == [build]

    row = EnvironmentBuild.objects.get()
    build_lifecycle.offer_next(row.node_id)
    alpha.claim(row)
    alpha.tell(row, "preparing")
    (on_node,) = api.get(ADDRESS).json()["builds"]
    assert (on_node["state"], on_node["build"], on_node["build_s"]) == ("building", build["id"], None)
    completed(alpha, row)
    (on_node,) = api.get(ADDRESS).json()["builds"]
    assert (on_node["state"], on_node["build_s"] >= 0) == ("ready", True)
    assert api.get(f"{ADDRESS}builds/{build['id']}/").json()["state"] == "built"


def test_a_curated_environment_can_be_built(api: Client, alpha: Played) -> None:
    item = CURATED[0]
    refused = order(api, f"/api/v1/environments/{item.name}/versions/{item.version}/")
    assert refused.status_code == 400
    assert "the hub finds the packages of TrainHub-PyTorch-2.13 first" in refused.json()["detail"]
    locked_curated(item.name)
    (build,) = order(api, f"/api/v1/environments/{item.name}/versions/{item.version}/").json()
    assert (build["name"], build["version"]) == (item.name, item.version)


def test_a_build_is_canceled_once(api: Client, who: Principal, alpha: Played) -> None:
    locked(who)
    (build,) = order(api).json()
    address = f"{ADDRESS}builds/{build['id']}/"
    answer = api.post(f"{address}cancel/")
    assert (answer.status_code, answer.json()["state"]) == (202, "canceled")
    assert answer.json()["reason"] == "carl canceled it."
    again = api.post(f"{address}cancel/")
    assert again.status_code == 409
    assert "it is canceled" in again.json()["detail"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"nodes": "alpha"}, "must be a list of names of nodes"),
        ({"nodes": [1]}, "must be a list of names of nodes"),
        ({"nodes": []}, "name at least one node"),
        ({"nodes": ["delta"]}, "there is no node 'delta'; there are: alpha"),
    ],
)
def test_bad_input_names_the_field(
    api: Client, who: Principal, alpha: Played, body: dict[str, Any], words: str
) -> None:
    locked(who)
    refused(order(api, **body), 400, "nodes", words)


def test_what_cannot_be_built_is_named(api: Client, who: Principal, alpha: Played) -> None:
    failed(who)
    refused(order(api), 400, "version", "only a locked version can be built")
    for address in ("/api/v1/environments/mine/versions/7/", "/api/v1/environments/system/versions/1/"):
        assert order(api, address).status_code == 404


def test_builds_of_another_name_or_none_are_not_found(api: Client, who: Principal, alpha: Played) -> None:
    locked(who)
    (build,) = order(api).json()
    assert api.get(f"/api/v1/environments/other/versions/1/builds/{build['id']}/").status_code == 404
    assert api.get(f"{ADDRESS}builds/{'0' * 32}/").status_code == 404
