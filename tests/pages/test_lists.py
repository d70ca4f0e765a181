"""Dashboard, run list, experiments, environments, search."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from pytest_django import DjangoAssertNumQueries

from clusters.models import Lease
from jobs.models import Experiment, Run
from tests.jobs.builders import launched, node, queued
from tests.pages.builders import HTMX, failed, running, started, text_of
from tests.people import client_of, make_contributor, make_person, make_viewer, make_workspace, principal_of
from workspaces.access import Principal
from workspaces.states import Role

Counting = DjangoAssertNumQueries
pytestmark = pytest.mark.django_db
MAX_QUERIES = 19
"""However many rows a page shows."""


def seen(address: str, **headers: str) -> str:
    return text_of(client_of(make_viewer()), address, **headers)


def shown_experiments(query: str) -> list[str]:
    """Returns the names in their order on the page."""
    return re.findall(r'href="/runs/\?experiment=(\w+)"', seen(f"/experiments/?{query}", **HTMX))


class TestDashboard:
    def test_counts_what_runs_waits_and_failed(self, who: Principal) -> None:
        failed(who, "broken")
        running(who, "going")
        for _ in range(2):
            queued(who)
        text = seen("/")
        for count, word in ((1, "running"), (2, "waiting"), (1, "failed today")):
            assert f"<strong>{count}</strong><span>{word}" in text, word

    def test_shows_slots_where_there_is_no_gpu_and_who_holds_them(self, who: Principal) -> None:
        _, run = running(who)
        text = seen("/")
        assert "2<small> of 8</small>" in text
        assert f'title="Slot 0: run {run.number}"' in text

    def test_shows_gpus_where_there_are_some(self, who: Principal) -> None:
        node("heavy", gpus=4)
        text = seen("/")
        assert "0<small> of 4</small>" in text
        assert "GPU 3 H200, free" in text

    def test_what_another_workspace_holds_is_only_busy(self, who: Principal) -> None:
        other = make_workspace("elsewhere")
        Lease.objects.create(
            node=node("alpha"), holder="f" * 32, attempt=1, label="run 7", slots=1, workspace=other
        )
        text = seen("/")
        assert "Slot 0: busy" in text
        assert "run 7" not in text

    def test_an_active_run_shows_its_last_log_line(self, who: Principal) -> None:
        running(who)
        assert "epoch 2 loss=0.5" in seen("/")

    def test_when_empty_teaches_the_next_step(self, who: Principal) -> None:
        assert "The example Hello needs no packages" in seen("/")
        hello = 'action="/runs/new/example/hello/"'
        assert hello in text_of(client_of(make_contributor()), "/")
        assert hello not in seen("/"), "a viewer may not submit"

    def test_costs_the_same_however_many_runs(
        self, who: Principal, django_assert_max_num_queries: Counting
    ) -> None:
        for number in range(4):
            running(who, f"run {number}")
        for _ in range(6):
            queued(who)
        client = client_of(make_viewer())
        text_of(client, "/")  # the session notes its workspace, once
        with django_assert_max_num_queries(MAX_QUERIES):
            text_of(client, "/")


class TestRunList:
    def test_lists_runs_newest_first_with_state_and_reason(self, who: Principal) -> None:
        failed(who, "first")
        running(who, "second")
        text = seen("/runs/")
        assert text.index("second") < text.index("first")
        assert "Rank 1 exited with code 1 on alpha" in text

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("state=failed", {"broken"}),
            ("state=active", {"going"}),
            ("q=goi", {"going"}),
            ("q=run+1", {"broken"}),
            ("experiment=default", {"broken", "going"}),
            ("experiment=other", set()),
            ("mine=1", set()),
            ("state=nonsense", {"broken", "going"}),
            ("q=%00", {"broken", "going"}),
            ("page=99", {"broken", "going"}),
        ],
    )
    def test_is_narrowed_by_the_address(self, who: Principal, query: str, names: set[str]) -> None:
        failed(who, "broken")
        running(who, "going")
        text = seen(f"/runs/?{query}", **HTMX)
        assert {name for name in ("broken", "going") if f">{name}</a>" in text} == names

    def test_says_when_filters_leave_nothing(self, who: Principal) -> None:
        running(who)
        assert "Show all runs" in seen("/runs/?q=zzzz")

    def test_shows_nothing_of_another_workspace(self, who: Principal) -> None:
        other = principal_of(make_person("otto", Role.OWNER, make_workspace("elsewhere")))
        queued(other, display_name="secret plans")
        assert "secret plans" not in seen("/runs/")
        assert "secret plans" not in seen("/search/?q=secret")
        assert "secret plans" not in seen("/")

    def test_costs_the_same_however_many_runs(
        self, who: Principal, django_assert_max_num_queries: Counting
    ) -> None:
        for number in range(12):
            queued(who, display_name=f"run {number}")
        client = client_of(make_contributor())
        with django_assert_max_num_queries(MAX_QUERIES):
            text_of(client, "/runs/")

    def test_is_cut_into_pages(self, who: Principal) -> None:
        first = queued(who, display_name="very first")
        Run.objects.bulk_create(
            Run(number=100 + index, workspace=who.workspace, experiment=first.experiment, spec=first.spec)
            for index in range(55)
        )
        assert "1–50 of 56" in seen("/runs/")
        assert "very first" in seen("/runs/?page=2")


class TestCatalog:
    def test_experiments_show_counts_and_the_last_run(self, who: Principal) -> None:
        failed(who, "first try")
        running(who, "newer")
        text = seen("/experiments/")
        assert "newer" in text
        assert "first try" not in text

    def test_experiments_are_searched_by_name_and_description(self, who: Principal) -> None:
        queued(who, experiment="mnist")
        queued(who, experiment="wine")
        Experiment.objects.filter(name="wine").update(tags={"mlflow.note.content": "Which <grape> is it?"})
        assert shown_experiments("q=NIST") == ["mnist"]
        assert shown_experiments("q=grape") == ["wine"]
        assert "Which &lt;grape&gt; is it?" in seen("/experiments/")
        assert "No experiment has “zzz”" in seen("/experiments/?q=zzz")

    @pytest.mark.parametrize(
        ("sort", "names"),
        [
            ("", ["c", "b", "A"]),
            ("nonsense", ["c", "b", "A"]),
            ("last", ["A", "b", "c"]),
            ("name", ["A", "b", "c"]),
            ("-name", ["c", "b", "A"]),
            ("-runs", ["b", "A", "c"]),
            ("-failed", ["A", "b", "c"]),
        ],
    )
    def test_experiments_are_sorted_by_their_heads(self, who: Principal, sort: str, names: list[str]) -> None:
        for name in ("A", "b", "b", "c"):
            run = queued(who, experiment=name)
            if name == "A":
                Run.objects.filter(pk=run.pk).update(state="Failed")
        assert shown_experiments(f"sort={sort}") == names

    def test_a_head_tells_the_order_and_turns_it_round(self, who: Principal) -> None:
        queued(who)
        text = " ".join(seen("/experiments/?sort=-runs&q=default").split())
        assert 'aria-sort="descending"> <a href="/experiments/?sort=runs&amp;q=default">Runs</a>' in text
        assert 'href="/experiments/?sort=name&amp;q=default">Experiment</a>' in text
        assert 'name="sort" value="-runs"' in text, "kept by a search"

    def test_environments_show_curated_ones_and_each_node_s_interpreters(self, who: Principal) -> None:
        node("alpha")
        text = seen("/environments/")
        for words in ("TrainHub-PyTorch-2.13", "torch==2.13.0", "/usr/bin/python3"):
            assert words in text, words

    def test_an_interpreter_of_several_nodes_is_listed_once(self, who: Principal) -> None:
        for name in ("alpha", "beta"):
            node(name)
        text = seen("/environments/")
        assert text.count("/usr/bin/python3") == 1
        assert all(f'href="/nodes/{name}/"' in text for name in ("alpha", "beta"))


class TestSearch:
    @pytest.mark.parametrize("text", ["digits", "1", "run 1", "#1"])
    def test_finds_runs_by_name_and_number(self, who: Principal, text: str) -> None:
        started(who, "digits")
        assert 'href="/runs/1/"' in seen(f"/search/?{urlencode({'q': text})}", **HTMX)

    def test_finds_nodes_and_pages(self, who: Principal) -> None:
        node("alpha")
        assert 'href="/nodes/alpha/"' in seen("/search/?q=alph")
        assert 'href="/experiments/"' in seen("/search/?q=experim")

    def test_leads_to_all_runs_when_there_are_more_than_it_lists(self, who: Principal) -> None:
        for _ in range(7):
            queued(who, display_name="many words")
        text = seen("/search/?q=many+words")
        assert text.count('href="/runs/') - text.count('href="/runs/new/') >= 7
        assert 'href="/runs/?q=many%20words"' in text
        assert "<h2>Runs</h2>" in text

    def test_says_when_nothing_is_found(self, who: Principal) -> None:
        launched(who)
        assert "No results for" in seen("/search/?q=zzzz", **HTMX)
