"""The part of an environment's page about nodes, and the page of a build."""

from __future__ import annotations

import pytest

from environments.curated import CURATED
from jobs.builds import build_lifecycle
from jobs.models import EnvironmentBuild
from tests.environments.locks import locked, locked_curated
from tests.jobs.builders import Played, node
from tests.jobs.builds.ordered import completed
from tests.people import client_of, make_contributor, make_viewer, principal_of
from trainhub_launch.log_names import ENVIRONMENT_LOG
from workspaces.access import Principal

pytestmark = pytest.mark.usefixtures("valkey")
PAGE = "/environments/mine/versions/1/"


@pytest.fixture
def who(db: None) -> Principal:
    return principal_of(make_contributor())


def seen(address: str) -> str:
    answer = client_of(make_viewer()).get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_build_from_the_form_to_its_log(who: Principal) -> None:
    alpha = Played(node("alpha"))
    old = node("old")
    old.capabilities = "secrets"
    old.save(update_fields=["capabilities"])
    locked(who)
    client = client_of(who.user)
    page = client.get(PAGE).content.decode()
    assert 'value="alpha" checked' in page
    assert 'value="old" disabled' in page
    assert "takes no orders to build; upgrade its agent" in page
    assert "Build now" not in seen(PAGE), "a viewer may not"

    answer = client.post(f"{PAGE}build/", {"nodes": ["alpha"]})
    assert answer.headers["Location"] == f"{PAGE}#en-nodes"
    build = EnvironmentBuild.objects.get()
    own = f"/environments/mine/builds/{build.pk}/"
    assert own in seen(f"{PAGE}nodes/")
    assert "every 2s" in seen(f"{PAGE}nodes/")

    build_lifecycle.offer_next(alpha.node.pk)
    alpha.claim(build)
    alpha.tell(build, "preparing")
    alpha.log(build, ENVIRONMENT_LOG, 0, b"<b>\n")
    text = seen(own)
    assert f'data-live="/ws/builds/{build.pk}/"' in text
    assert "&lt;b&gt;" in text
    client.post(f"{own}cancel/")
    alpha.tell(build, "done", stopping="canceled", logs={ENVIRONMENT_LOG: 4})
    assert "carl canceled it." in seen(own)
    assert "every 20s" in seen(f"{PAGE}nodes/")


def test_a_failure_is_shown_with_its_reason_on_both_pages(who: Principal) -> None:
    alpha = Played(node("alpha"))
    item = CURATED[0]
    address = f"/environments/{item.name}/"
    locked_curated(item.name)
    client_of(who.user).post(f"{address}versions/{item.version}/build/", {"nodes": ["alpha"]})
    build = EnvironmentBuild.objects.get()
    build_lifecycle.offer_next(alpha.node.pk)
    alpha.claim(build)
    alpha.tell(build, "done", error="No <wheel>.", error_kind="environment")
    for page in (address, f"{address}builds/{build.pk}/"):
        assert "No &lt;wheel&gt;." in seen(page)
    again = client_of(who.user).post(f"{address}versions/{item.version}/build/", {}, follow=True)
    assert "Nothing was ordered: name at least one node" in again.content.decode()


def test_the_wizard_says_where_it_is_ready(who: Principal) -> None:
    alpha = Played(node("alpha"))
    locked(who)
    client = client_of(who.user)
    draft = client.post("/runs/new/environment/", {"environment": "mine:1"}).headers["Location"]
    step = draft.replace("/source/", "/environment/")
    assert "No node has it ready yet." in client.get(step).content.decode()
    client.post(f"{PAGE}build/", {"nodes": ["alpha"]})
    build = EnvironmentBuild.objects.get()
    build_lifecycle.offer_next(alpha.node.pk)
    alpha.claim(build)
    alpha.tell(build, "preparing")
    completed(alpha, build)
    text = client.get(step).content.decode()
    assert "Ready on alpha." in text
    assert " on alpha (" in text


def test_what_does_not_exist_is_not_found(who: Principal) -> None:
    locked(who)
    client = client_of(make_viewer())
    for address in (f"/environments/mine/builds/{'0' * 32}/", "/environments/mine/versions/7/nodes/"):
        assert client.get(address).status_code == 404


def test_a_curated_environment_is_locked_before_nodes_build_it(who: Principal) -> None:
    Played(node("alpha"))
    address = f"/environments/{CURATED[0].name}/versions/1/build/"
    answer = client_of(who.user).post(address, {"nodes": ["alpha"]}, follow=True)
    assert "The hub finds the packages of TrainHub-PyTorch-2.13 first" in answer.content.decode()
    assert not EnvironmentBuild.objects.exists()
