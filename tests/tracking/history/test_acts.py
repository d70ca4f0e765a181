from __future__ import annotations

from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.utils import timezone

from jobs.models import Run, RunTag
from jobs.states import RunState
from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_owner,
    make_person,
    make_viewer,
    make_workspace,
)
from tests.tracking.history.table_page import bulk, text_of
from tests.tracking.search.builders import run_with_data
from tracking.history import saved_views
from tracking.models import SavedView, Star
from workspaces.models import AuditEvent
from workspaces.states import Role

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    return client_of(make_contributor())


def sentences_of(answer: Any) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


class TestBulk:
    def test_does_what_it_can_and_says_what_it_refused_and_why(self, client: Client) -> None:
        ended = run_with_data("a", state=RunState.COMPLETED)
        archived = run_with_data("b", state=RunState.FAILED, archived_at=timezone.now())
        active = run_with_data("c", kind="job", state=RunState.RUNNING)
        answer = bulk(client, "archive", ended.number, archived.number, active.number, 999_999)
        assert answer["Location"] == "/runs/?q=x"
        assert sentences_of(answer) == [
            f"Run {ended.number} is archived.",
            f"Run {archived.number}: is archived already.",
            f"Run {active.number} is Running; archive it when it has ended.",
            "Run 999999: does not exist, or you may not see it.",
        ]
        ended.refresh_from_db()
        assert ended.archived_at is not None

    def test_a_number_that_no_run_can_have_is_not_there(self) -> None:
        data = {"verb": "archive", "runs": [10**30, 2**31]}
        answer = api_client(make_contributor()).post(
            "/api/v1/runs/bulk/", data, content_type="application/json"
        )
        assert (answer.status_code, [item["run"] for item in answer.json()["refused"]]) == (
            200,
            [2**31, 10**30],
        )

    def test_tags_all_of_them(self, client: Client) -> None:
        runs = [run_with_data(name, tags={"team": "old"}) for name in "ab"]
        answer = bulk(client, "tag", *(run.number for run in runs), key="team", value="new")
        assert sentences_of(answer) == [f"2 runs ({runs[0].number}, {runs[1].number}) are tagged."]
        assert set(RunTag.objects.values_list("value", flat=True)) == {"new"}
        bulk(client, "untag", *(run.number for run in runs), key="team")
        assert not RunTag.objects.exists()
        audited = AuditEvent.objects.filter(verb__startswith="run.").order_by("pk")
        assert list(audited.values_list("verb", flat=True)) == [
            "run.tag",
            "run.tag",
            "run.untag",
            "run.untag",
        ]

    def test_a_tag_that_a_run_does_not_have_is_not_taken_from_it(self, client: Client) -> None:
        run = run_with_data("a")
        assert sentences_of(bulk(client, "untag", run.number, key="team")) == [
            f"Run {run.number}: does not have that tag."
        ]
        assert not AuditEvent.objects.filter(verb="run.untag").exists()

    @pytest.mark.parametrize(("more", "words"), [
        ({"key": ""}, "1 to 250 characters"), ({"key": "k" * 300}, "1 to 250 characters"),
        ({"key": "k", "value": "v" * 9000}, "8000"),
    ])  # fmt: skip
    def test_a_tag_that_cannot_be_is_refused_as_a_whole(
        self, client: Client, more: dict[str, str], words: str
    ) -> None:
        run = run_with_data("a")
        (sentence,) = sentences_of(bulk(client, "tag", run.number, **more))
        assert sentence.startswith("Nothing was done.")
        assert words in sentence

    def test_deletes_softly_and_restores(self, client: Client) -> None:
        run = run_with_data("a", state=RunState.COMPLETED)
        bulk(client, "delete", run.number)
        assert Run.objects.get(pk=run.pk).deleted_at is not None
        assert (
            sentences_of(bulk(client, "tag", run.number, key="k"))[-1]
            == f"Run {run.number}: is deleted; restore it first."
        )
        bulk(client, "restore", run.number)
        assert Run.objects.get(pk=run.pk).deleted_at is None

    def test_a_run_from_elsewhere_is_not_ours_to_cancel(self, client: Client) -> None:
        run = run_with_data("a")
        assert "is external: TrainHub did not start it" in sentences_of(bulk(client, "cancel", run.number))[0]

    def test_pins_for_the_workspace_and_is_audited(self, client: Client) -> None:
        run = run_with_data("a")
        bulk(client, "pin", run.number)
        run.refresh_from_db()
        assert run.pinned
        assert AuditEvent.objects.filter(verb="run.pin", actor="carl").exists()

    def test_viewers_star_and_compare_and_nothing_else(self) -> None:
        run = run_with_data("a", state=RunState.COMPLETED)
        viewer = client_of(make_viewer())
        assert bulk(viewer, "delete", run.number).status_code == 403
        assert bulk(viewer, "star", run.number).status_code == 302
        assert bulk(viewer, "compare", run.number, 7)["Location"] == f"/compare/?runs={run.number}%2C7"
        assert Star.objects.filter(run=run, user=make_viewer()).exists()
        assert Run.objects.get(pk=run.pk).deleted_at is None

    def test_another_workspaces_run_is_not_there(self) -> None:
        run = run_with_data("a", state=RunState.COMPLETED)
        stranger = client_of(make_person("olga", Role.OWNER, make_workspace("other")))
        assert sentences_of(bulk(stranger, "delete", run.number)) == [
            f"Run {run.number}: does not exist, or you may not see it."
        ]
        assert stranger.post(f"/runs/star/{run.number}/").status_code == 404

    def test_never_leads_to_another_site(self, client: Client) -> None:
        run = run_with_data("a")
        for there in ("https://example.org/", "//example.org/", "javascript:alert(1)", ""):
            assert bulk(client, "pin", run.number, next=there)["Location"] == "/runs/"

    def test_many_refusals_are_told_shortly(self, client: Client) -> None:
        runs = [run_with_data(f"r{number}", kind="job", state=RunState.RUNNING) for number in range(15)]
        sentences = sentences_of(bulk(client, "archive", *(run.number for run in runs)))
        assert len(sentences) == 11
        assert sentences[-1] == "5 more failed."

    def test_nonsense_changes_nothing(self, client: Client) -> None:
        run = run_with_data("a")
        assert "Nothing was done" in sentences_of(bulk(client, "explode", run.number))[0]
        assert "Nothing was done" in sentences_of(bulk(client, "pin"))[0]
        assert client.get("/runs/bulk/").status_code == 405


class TestStar:
    def test_comes_and_goes(self) -> None:
        run = run_with_data("a")
        client = client_of(make_viewer())
        assert (
            'aria-pressed="true"'
            in client.post(f"/runs/star/{run.number}/", headers={"HX-Request": "true"}).content.decode()
        )
        assert (
            'aria-pressed="false"'
            in client.post(f"/runs/star/{run.number}/", headers={"HX-Request": "true"}).content.decode()
        )
        assert not Star.objects.exists()


class TestViews:
    def test_keep_the_question_not_the_runs(self, client: Client) -> None:
        query = "filter=metrics.acc+%3E+0.5&column=metrics.acc&nonsense=1&page=7"
        client.post("/runs/views/", {"name": "good ones", "query": query})
        view = SavedView.objects.get()
        assert view.query == "filter=metrics.acc%20%3E%200.5&column=metrics.acc"
        run_with_data("later", metrics={"acc": 0.9})
        assert ">later</a>" in text_of(f"/runs/?{view.query}", make_contributor())

    def test_of_the_same_name_take_the_place_of_the_old_one(self, client: Client) -> None:
        for query in ("q=a", "q=b"):
            client.post("/runs/views/", {"name": "mine", "query": query})
        assert [view.query for view in SavedView.objects.all()] == ["q=b"]

    def test_are_seen_by_others_where_they_are_shared(self, client: Client) -> None:
        client.post("/runs/views/", {"name": "shared one", "query": "q=a", "shared": "1"})
        client.post("/runs/views/", {"name": "own one", "query": "q=b"})
        others = text_of("/runs/menu/views/", make_viewer())
        assert "shared one" in others
        assert "own one" not in others
        assert "own one" in text_of("/runs/menu/views/", make_contributor())
        assert "shared one" not in text_of(
            "/runs/menu/views/", make_person("olga", Role.OWNER, make_workspace("other"))
        )

    def test_viewers_have_their_own_but_share_none(self) -> None:
        client_of(make_viewer()).post("/runs/views/", {"name": "v", "query": "q=a", "shared": "1"})
        assert not SavedView.objects.get().shared

    def test_are_deleted_by_their_maker_and_shared_ones_by_an_owner(self, client: Client) -> None:
        client.post("/runs/views/", {"name": "v", "query": "q=a", "shared": "1"})
        view = SavedView.objects.get()
        assert client_of(make_viewer()).post(f"/runs/views/{view.pk}/delete/").status_code == 404
        assert client_of(make_owner()).post(f"/runs/views/{view.pk}/delete/").status_code == 302
        assert not SavedView.objects.exists()

    def test_need_a_name(self, client: Client) -> None:
        for name in ("", " ", "n" * 101):
            assert "needs a name" in sentences_of(client.post("/runs/views/", {"name": name, "query": ""}))[0]

    def test_are_so_many_for_each_person_and_no_more(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(saved_views, "MAX_VIEWS_PER_PERSON", 1)
        for name in ("first", "second"):
            answer = client.post("/runs/views/", {"name": name, "query": "q=a"})
        assert "You have 1 views; delete one" in sentences_of(answer)[-1]
        client.post("/runs/views/", {"name": "first", "query": "q=b"})
        client_of(make_viewer()).post("/runs/views/", {"name": "theirs", "query": "q=c"})
        assert sorted(SavedView.objects.values_list("name", "query")) == [("first", "q=b"), ("theirs", "q=c")]
