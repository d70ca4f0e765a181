"""Who gets which page, and who may do what to a run."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import Draft, Run
from jobs.states import RunState
from tests.pages.builders import failed, running, text_of
from tests.people import client_of, make_contributor, make_person, make_stranger, make_viewer, make_workspace
from workspaces.access import Principal
from workspaces.models import User
from workspaces.states import Role

pytestmark = pytest.mark.django_db
PAGES = ["/", "/runs/", "/search/?q=digits", "/experiments/", "/environments/", "/environments/system/"]
PARTS = ["", "header/", "logs/", "members/", "plan/", "outputs/", "events/", "spec/", "export/"]
ACTIONS = ["cancel", "clone", "delete"]


def outsider() -> User:
    """A member, with every right, of another workspace."""
    return make_person("otto", Role.OWNER, make_workspace("elsewhere"))


class TestPages:
    @pytest.mark.parametrize("address", PAGES)
    def test_a_viewer_sees_it(self, who: Principal, address: str) -> None:
        assert "</html>" in text_of(client_of(make_viewer()), address)

    @pytest.mark.parametrize("address", PAGES)
    def test_a_stranger_gets_nothing(self, who: Principal, address: str) -> None:
        assert client_of(make_stranger()).get(address).status_code == 404

    @pytest.mark.parametrize("address", PAGES)
    def test_nobody_is_sent_to_the_door(self, who: Principal, address: str) -> None:
        assert client_of(None).get(address).headers["location"].startswith("/sign-in/")


def test_a_form_that_is_too_large_says_how_much_there_may_be(who: Principal, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2000
    answer = client_of(make_contributor()).post("/environments/new/", {"source": "numpy\n" * 1000})
    assert answer.status_code == 413
    assert "takes at most 2.0\xa0KB of text in one form" in answer.content.decode()


class TestRunPage:
    @pytest.mark.parametrize("part", PARTS)
    def test_a_viewer_sees_every_part(self, who: Principal, part: str) -> None:
        run = failed(who)
        text_of(client_of(make_viewer()), f"/runs/{run.number}/{part}")

    @pytest.mark.parametrize("part", PARTS)
    def test_whoever_is_not_a_member_sees_none(self, who: Principal, part: str) -> None:
        run = failed(who)
        for person in (make_stranger(), outsider()):
            assert client_of(person).get(f"/runs/{run.number}/{part}").status_code == 404

    def test_an_id_leads_to_the_number_inside_the_workspace_only(self, who: Principal) -> None:
        _, run = running(who)
        assert (
            client_of(make_viewer()).get(f"/runs/id/{run.pk}/").headers["location"] == f"/runs/{run.number}/"
        )
        assert client_of(outsider()).get(f"/runs/id/{run.pk}/").status_code == 404

    def test_a_tab_that_does_not_exist_is_not_found(self, who: Principal) -> None:
        _, run = running(who)
        assert client_of(make_viewer()).get(f"/runs/{run.number}/nothing/").status_code == 404


class TestActions:
    @pytest.mark.parametrize("action", ACTIONS)
    def test_a_viewer_may_not_and_is_not_offered_it(self, who: Principal, action: str) -> None:
        _, run = running(who)
        client = client_of(make_viewer())
        assert client.post(f"/runs/{run.number}/{action}/").status_code == 403
        assert f"/{action}/" not in text_of(client, f"/runs/{run.number}/")

    @pytest.mark.parametrize("action", ACTIONS)
    def test_a_link_alone_does_nothing(self, who: Principal, action: str) -> None:
        _, run = running(who)
        assert client_of(make_contributor()).get(f"/runs/{run.number}/{action}/").status_code == 405

    @pytest.mark.parametrize("action", ACTIONS)
    def test_whoever_is_not_a_member_does_not_learn_that_there_is_such_a_run(
        self, who: Principal, action: str
    ) -> None:
        _, run = running(who)
        assert client_of(outsider()).post(f"/runs/{run.number}/{action}/").status_code == 404

    def test_cancel_asks_for_the_end(self, who: Principal) -> None:
        _, run = running(who)
        client_of(make_contributor()).post(f"/runs/{run.number}/cancel/")
        run.refresh_from_db()
        assert run.state == RunState.CANCEL_REQUESTED

    def test_cancel_of_an_ended_run_says_so(self, who: Principal) -> None:
        run = failed(who)
        answer = client_of(make_contributor()).post(f"/runs/{run.number}/cancel/", follow=True)
        assert "has already ended" in answer.content.decode()

    def test_clone_opens_a_wizard_filled_with_the_run(self, who: Principal) -> None:
        run = failed(who)
        answer = client_of(make_contributor()).post(f"/runs/{run.number}/clone/")
        draft = Draft.objects.get(user=who.user)
        assert answer.headers["location"] == f"/runs/new/{draft.pk}/review/"
        assert "train.py" in str(draft.steps)

    def test_delete_refuses_a_run_that_is_not_over(self, who: Principal) -> None:
        _, run = running(who)
        answer = client_of(make_contributor()).post(f"/runs/{run.number}/delete/", follow=True)
        assert "cancel it before you delete it" in answer.content.decode()
        assert Run.objects.filter(pk=run.pk).exists()

    def test_delete_takes_an_ended_run_out_of_sight(self, who: Principal) -> None:
        run = failed(who)
        client_of(make_contributor()).post(f"/runs/{run.number}/delete/")
        assert not Run.objects.for_workspace(who.workspace).filter(pk=run.pk).exists()
        assert Run.objects.deleted().filter(pk=run.pk).exists()


class TestRefusals:
    def test_a_refusal_says_which_role_is_needed(self, who: Principal) -> None:
        _, run = running(who)
        answer = client_of(make_viewer()).post(f"/runs/{run.number}/cancel/")
        assert "This needs the role contributor; you are viewer of Default" in answer.content.decode()

    def test_a_page_that_is_not_there_looks_like_the_others(self, who: Principal) -> None:
        answer = client_of(make_viewer()).get("/nothing/")
        assert answer.status_code == 404
        assert "th-rail" in answer.content.decode()

    def test_a_form_without_its_token_is_refused_in_our_words(self, who: Principal) -> None:
        _, run = running(who)
        answer = client_of(make_contributor(), csrf=True).post(f"/runs/{run.number}/cancel/")
        assert answer.status_code == 403
        assert "This form has expired" in answer.content.decode()
