"""A draft holds what was typed, in whatever order it arrives."""

from __future__ import annotations

import itertools
import re

import pytest
from django.test import Client

from clusters.models import Node
from jobs.models import Draft, Run
from jobs.wizard import drafts
from tests.people import client_of, make_owner, make_stranger, make_viewer
from tests.wizard.builders import address, post, preview, typed, with_code
from workspaces.access import Principal

pytestmark = pytest.mark.usefixtures("valkey")


class TestTabs:
    def test_two_tabs_keep_two_drafts(self, client: Client, who: Principal) -> None:
        one, other = (client.post("/runs/new/blank/").headers["Location"] for _ in range(2))
        assert one != other
        client.post(one, typed("source", script="one.py"))
        client.post(other, typed("source", script="other.py"))
        assert 'value="one.py"' in client.get(one).content.decode()
        assert 'value="other.py"' in client.get(other).content.decode()


class TestBackAndForward:
    def test_what_is_invalid_is_kept_as_typed(self, client: Client, who: Principal, ready: Node) -> None:
        draft = with_code(who)
        post(client, draft, "resources", go="source", gpus_per_node="many", timeout="<soon>")
        page = client.get(address(draft, "resources")).content.decode()
        assert 'value="many"' in page
        assert 'value="&lt;soon&gt;"' in page

    def test_any_step_can_be_gone_to_from_an_invalid_one(self, client: Client, who: Principal) -> None:
        draft = with_code(who)
        answer = post(client, draft, "distribution", go="review", kind="mpi", mpi_process_count="x")
        assert answer.status_code == 302
        assert answer.headers["Location"] == address(draft, "review")

    def test_next_stays_at_a_step_with_errors_and_says_them(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        answer = post(client, draft, "distribution", kind="mpi", mpi_process_count="x")
        assert answer.status_code == 422
        assert "must be a whole number" in answer.content.decode()

    def test_next_leads_through_all_steps_to_the_review(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        names = ["source", "distribution", "resources", "environment", "review"]
        for here, there in itertools.pairwise(names):
            fields = {"script": "train.py"} if here == "source" else {}
            assert post(client, draft, here, **fields).headers["Location"] == address(draft, there)

    def test_enter_goes_forward(self, client: Client, who: Principal) -> None:
        """A browser presses the first button that belongs to the form."""
        page = client.get(address(with_code(who), "resources")).content.decode()
        first = re.search(r'<button[^>]*form="wizard-form"[^>]*>', page)
        assert first is not None
        assert 'value="next"' in first[0]

    def test_switching_the_distribution_forgets_nothing(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        post(client, draft, "distribution", kind="pytorch_process", pp_process_count="7")
        post(client, draft, "distribution", kind="mpi", pp_process_count="7", mpi_process_count="3")
        page = client.get(address(draft, "distribution")).content.decode()
        assert 'name="pp_process_count" value="7"' in page
        assert 'name="mpi_process_count" value="3"' in page


class TestAutosave:
    def test_typing_is_kept_without_a_button(self, client: Client, who: Principal, ready: Node) -> None:
        draft = with_code(who)
        preview(client, draft, "environment", display_name="half typ")
        assert 'value="half typ"' in client.get(address(draft, "environment")).content.decode()

    def test_a_post_that_was_overtaken_changes_nothing(self, who: Principal) -> None:
        draft = with_code(who)
        drafts.save_step(draft, "resources", typed("resources", typed_at="9" * 5000, cluster="no time"))
        drafts.save_step(draft, "resources", typed("resources", typed_at="2000", cluster="later"))
        drafts.save_step(draft, "resources", typed("resources", typed_at="1000", cluster="earlier"))
        assert Draft.objects.get(pk=draft.pk).steps["resources"]["cluster"] == ["later"]

    def test_typing_during_an_upload_does_not_undo_it(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        source = draft.steps["source"]["source"]
        preview(client, draft, "source", source="", script="other.py")
        draft.refresh_from_db()
        assert draft.steps["source"]["source"] == source
        assert draft.steps["source"]["script"] == ["other.py"]


class TestWhose:
    @pytest.mark.parametrize("path", ["", "review/", "run.json"])
    def test_a_teammates_draft_does_not_exist(self, who: Principal, path: str) -> None:
        draft = with_code(who)
        client = client_of(make_owner())
        assert client.get(f"/runs/new/{draft.pk}/{path or 'source/'}").status_code == 404

    def test_a_viewer_may_not_open_the_wizard_and_reads_why(self, who: Principal) -> None:
        answer = client_of(make_viewer()).get("/runs/new/")
        assert answer.status_code == 403
        assert "role" in answer.content.decode()

    def test_a_stranger_finds_nothing(self, who: Principal) -> None:
        stranger = client_of(make_stranger())
        assert stranger.get("/runs/new/").status_code == 404
        assert stranger.post("/runs/new/blank/").status_code == 404

    def test_somebody_signed_out_is_sent_to_the_door(self, who: Principal) -> None:
        assert client_of(None).get("/runs/new/").headers["Location"].startswith("/sign-in/")

    def test_a_form_of_another_site_is_refused(self, who: Principal) -> None:
        assert client_of(who.user, csrf=True).post("/runs/new/blank/").status_code == 403


class TestDiscard:
    def test_a_draft_can_be_thrown_away(self, client: Client, who: Principal) -> None:
        draft = with_code(who)
        client.post(f"/runs/new/{draft.pk}/discard/")
        assert not Draft.objects.filter(pk=draft.pk).exists()

    def test_open_drafts_are_offered_again(self, client: Client, who: Principal) -> None:
        draft = with_code(who)
        drafts.put(draft, "environment", display_name="third try")
        assert "third try" in client.get("/runs/new/").content.decode()


class TestSubmit:
    def submit(self, client: Client, draft: Draft) -> str:
        answer = client.post(f"/runs/new/{draft.pk}/submit/")
        assert answer.status_code == 302, answer.content.decode()
        return str(answer.headers["Location"])

    def test_leads_to_the_run(self, client: Client, who: Principal, ready: Node) -> None:
        run_page = self.submit(client, with_code(who, arguments="--epochs 3"))
        run = Run.objects.get()
        assert run_page == f"/runs/{run.number}/"
        assert run.spec["arguments"] == ["--epochs", "3"]
        assert run.created_by == who.user

    def test_a_second_submit_leads_to_the_same_run(self, client: Client, who: Principal, ready: Node) -> None:
        draft = with_code(who)
        assert self.submit(client, draft) == self.submit(client, draft)
        assert Run.objects.count() == 1

    def test_a_submit_whose_answer_was_lost_is_the_same_run(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        first = self.submit(client, draft)
        Draft.objects.filter(pk=draft.pk).update(submitted_run=None)
        assert self.submit(client, draft) == first
        assert Run.objects.count() == 1

    def test_a_submitted_draft_is_its_run_from_then_on(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who)
        run_page = self.submit(client, draft)
        assert client.get(address(draft, "source")).headers["Location"] == run_page
        assert post(client, draft, "resources", cluster="other").headers["Location"] == run_page
        draft.refresh_from_db()
        assert "resources" not in draft.steps

    def test_errors_are_told_and_nothing_is_submitted(
        self, client: Client, who: Principal, ready: Node
    ) -> None:
        draft = with_code(who, script="gone.py")
        answer = client.post(f"/runs/new/{draft.pk}/submit/")
        assert answer.status_code == 422
        assert "gone.py is not in the source folder" in answer.content.decode()
        assert not Run.objects.exists()
