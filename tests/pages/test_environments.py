"""The list of environments, the page of each, and the way from there to a new run."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from pytest_django import DjangoAssertNumQueries

from environments import curated
from environments.curated import CURATED
from jobs.models import Draft, Run
from jobs.scheduling.run_preview import preview
from tests.environments.locks import locked_curated
from tests.jobs.builders import Played, launched, node
from tests.pages.builders import HTMX, text_of
from tests.people import (
    client_of,
    make_contributor,
    make_person,
    make_viewer,
    make_workspace,
    principal_of,
)
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_launch.spec_reader import read_spec
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.django_db
NAME = CURATED[0].name
ADDRESS = f"/environments/{NAME}/"
MAX_QUERIES = 20


def seen(address: str, **headers: str) -> str:
    return text_of(client_of(make_viewer()), address, **headers)


def built(who: Principal, alpha: Played, seconds: float = 512) -> Run:
    """A run for which the node built the environment."""
    locked_curated(NAME, "torch==2.13.0\nscikit-learn==1.8.2\nsympy==1.14.0\n")
    run = launched(who, environment={"name": NAME}, display_name="first use")
    alpha.claim(run)
    fact = alpha.facts[(run.pk, 1)]
    alpha.facts[(run.pk, 1)] = replace(fact, phase_at={"accepted": 0.0, "preparing": time.time() - seconds})
    alpha.tell(run, "running", logs={ENVIRONMENT_LOG: 10})
    alpha.finish(run)
    return run


class TestList:
    @pytest.mark.parametrize("text", ["deepspeed", "DeepSpeed 0.19.8", "ninja"])
    def test_is_searched_by_name_and_package(self, text: str) -> None:
        found = seen(f"/environments/?q={text.replace(' ', '+')}", **HTMX)
        assert "/environments/TrainHub-DeepSpeed-0.19/" in found
        assert ADDRESS not in found

    def test_finds_interpreters_by_version_and_path(self, who: Principal) -> None:
        node("alpha")
        for text in ("3.11", "bin/python", "Python"):
            assert "/environments/system/?version=%2Fusr%2Fbin%2Fpython3" in seen(f"/environments/?q={text}")

    def test_says_when_nothing_is_found(self, who: Principal) -> None:
        node("alpha")
        text = seen("/environments/?q=<i>none")
        assert "No environment has “&lt;i&gt;none”" in text
        assert "<table" not in text

    def test_links_each_environment(self, who: Principal) -> None:
        text = seen("/environments/")
        assert all(f'href="/environments/{item.name}/"' in text for item in CURATED)


class TestPage:
    def test_shows_packages_with_the_versions_that_nodes_install(self, who: Principal) -> None:
        assert "as TrainHub was released with them" in seen(ADDRESS)
        built(who, Played(node("alpha")))
        text = seen(ADDRESS)
        for words in ("as nodes install them", "2.13.0", "1.8.2", "1 more that these need", "sympy 1.14.0"):
            assert words in text, words

    def test_shows_where_it_is_ready_and_how_long_that_took(self, who: Principal) -> None:
        built(who, Played(node("alpha")))
        node("beta")
        text = seen(ADDRESS)
        assert "1 of 2 nodes" in text
        assert 'href="/nodes/alpha/"' in text
        assert 'href="/clusters/local/"' in text
        assert "8 min 3" in text
        assert "downloads 3 packages, about 2.0 MiB" in text

    def test_before_the_first_use_it_says_what_would_be_downloaded(self, who: Principal) -> None:
        node("alpha")
        text = seen(ADDRESS)
        for words in (
            "0 of 1 node",
            "No node has it ready yet",
            "downloads 83 packages, about 2.6 GiB",
            "No run of this workspace has used it",
        ):
            assert words in text, words
        assert "Not needed yet" in text

    def test_lists_its_last_runs_and_the_way_to_all(self, who: Principal) -> None:
        run = built(who, Played(node("alpha")))
        other = launched(who, display_name="plain")
        text = seen(ADDRESS)
        assert f'href="/runs/{run.number}/"' in text
        assert f'href="/runs/{other.number}/"' not in text
        assert "/runs/?filter=environment+%3D+%22TrainHub-PyTorch-2.13%22" in text
        assert "first use" in seen("/runs/?filter=environment+%3D+%22TrainHub-PyTorch-2.13%22")

    def test_does_not_tell_another_workspace_s_runs(self, who: Principal) -> None:
        built(who, Played(node("alpha")))
        other = make_person("mallory", Role.OWNER, make_workspace("elsewhere"))
        text = text_of(client_of(other), ADDRESS)
        assert "first use</a>" not in text

    def test_an_interpreter_has_the_runs_that_named_it(self, who: Principal) -> None:
        node("alpha")
        launched(who, environment={"name": "system", "version": "/usr/bin/python3"}, display_name="named")
        launched(who, display_name="default")
        text = seen("/environments/system/?version=/usr/bin/python3")
        assert "<h1>Python 3.11.7</h1>" in text
        assert "named</a>" in text
        assert "default</a>" not in text
        assert "default</a>" in seen("/environments/system/")

    @pytest.mark.parametrize("address", ["/environments/none/", "/environments/system/?version=/none"])
    def test_what_does_not_exist_is_not_found(self, address: str) -> None:
        assert client_of(make_viewer()).get(address).status_code == 404

    def test_costs_the_same_however_many_runs(
        self, who: Principal, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        alpha = Played(node("alpha"))
        for _ in range(3):
            built(who, alpha)
        client = client_of(make_viewer())
        text_of(client, ADDRESS)  # the session notes its workspace, once
        with django_assert_max_num_queries(MAX_QUERIES):
            text_of(client, ADDRESS)


class TestNewRun:
    @pytest.mark.parametrize("value", [NAME, "system", "system:/usr/bin/python3"])
    def test_opens_the_wizard_with_it_chosen(self, who: Principal, value: str) -> None:
        node("alpha")
        client = client_of(make_contributor())
        answer = client.post("/runs/new/environment/", {"environment": value})
        assert answer.headers["Location"].endswith("/source/")
        draft = Draft.objects.get()
        text = text_of(client, f"/runs/new/{draft.pk}/environment/")
        assert f'<input type="radio" name="environment" value="{value}" checked>' in " ".join(text.split())

    def test_the_button_posts_it_and_is_offered_to_those_who_may(self) -> None:
        text = text_of(client_of(make_contributor()), ADDRESS)
        assert 'action="/runs/new/environment/"' in text
        assert f'name="environment" value="{NAME}"' in text
        assert 'action="/runs/new/environment/"' not in seen(ADDRESS)

    def test_an_unknown_one_is_refused_with_those_there_are(self) -> None:
        answer = client_of(make_contributor()).post(
            "/runs/new/environment/", {"environment": "x"}, follow=True
        )
        assert answer.redirect_chain == [("/environments/", 302)]
        assert f"Environment: &#x27;x&#x27; is none; choose one of system, {NAME}" in answer.content.decode()
        assert not Draft.objects.exists()


class TestSearch:
    @pytest.mark.parametrize("text", ["lightning", "Lightning-2.6"])
    def test_finds_environments_by_name_and_package(self, text: str) -> None:
        for address in (f"/search/?q={text}", f"/search/palette/?q={text}"):
            assert "/environments/TrainHub-Lightning-2.6/" in seen(address), address


class TestSuccession:
    """None of the curated environments is old at present, so the test says that one is."""

    @pytest.mark.parametrize(
        ("deprecated", "successor", "sentence"),
        [
            (
                "its PyTorch gets no more fixes",
                "TrainHub-PyTorch-3",
                f"{NAME} is deprecated: its PyTorch gets no more fixes; choose TrainHub-PyTorch-3",
            ),
            ("", "TrainHub-PyTorch-3", f"{NAME} has a newer successor: choose TrainHub-PyTorch-3"),
            ("its PyTorch gets no more fixes", "", "choose another environment for new runs"),
        ],
    )
    def test_stands_on_the_pages_of_the_environment_and_of_runs_with_it(
        self, monkeypatch: pytest.MonkeyPatch, deprecated: str, successor: str, sentence: str
    ) -> None:
        who = principal_of(make_contributor())
        node("alpha")
        run = launched(who, environment={"name": NAME}, display_name="old")
        assert sentence not in seen(ADDRESS)
        old = replace(curated.BY_NAME[NAME], deprecated=deprecated, successor=successor)
        monkeypatch.setitem(curated.BY_NAME, NAME, old)
        assert sentence in seen(ADDRESS)
        assert sentence in seen(f"/runs/{run.number}/overview/")
        assert sentence in client_of(make_viewer()).get("/environments/").content.decode()
        findings = preview(read_spec(run.spec), who).findings
        assert [item.level for item in findings if sentence in item.message] == ["hint"]

    def test_the_successor_of_a_curated_environment_is_one(self) -> None:
        assert {item.successor for item in curated.SETS} <= {"", *curated.BY_NAME}
