from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from jobs.models import Run
from jobs.retention import deletion, run_purge
from tests.api.asking import post
from tests.pages.builders import completed, running, text_of
from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_owner,
    make_stranger,
    make_viewer,
    principal_of,
)
from workspaces.access import Principal

pytestmark = pytest.mark.usefixtures("valkey")


@pytest.fixture
def who(db: None) -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def carl(who: Principal) -> Client:
    return client_of(who.user)


@pytest.fixture
def run(who: Principal, tmp_path: Path) -> Run:
    return completed(who, tmp_path, "first try")


class TestRunPage:
    def test_says_for_how_long_a_deleted_run_is_kept(self, carl: Client, run: Run) -> None:
        assert "are kept for 30 days. Until then it can be restored" in text_of(carl, f"/runs/{run.number}/")

    def test_deletes_with_an_undo_in_the_message(self, carl: Client, run: Run) -> None:
        shown = carl.post(f"/runs/{run.number}/delete/", follow=True).content.decode()
        assert f'action="/runs/{run.number}/restore/"' in shown
        assert carl.get(f"/runs/{run.number}/").status_code == 404
        assert carl.post(f"/runs/{run.number}/restore/", follow=True).status_code == 200
        assert carl.get(f"/runs/{run.number}/").status_code == 200

    def test_archives_and_puts_back(self, carl: Client, run: Run) -> None:
        carl.post(f"/runs/{run.number}/archive/")
        assert "Unarchive" in text_of(carl, f"/runs/{run.number}/")
        assert not Run.objects.listed().exists()
        carl.post(f"/runs/{run.number}/unarchive/")
        assert Run.objects.listed().exists()


class TestDeletedIsNowhere:
    ADDRESSES = ("/", "/runs/", "/runs/new/", "/experiments/", "/search/?q=first", "/register/")

    @pytest.mark.parametrize("address", ADDRESSES)
    def test_on_the_pages(self, carl: Client, who: Principal, run: Run, address: str) -> None:
        def shows() -> bool:
            response = carl.get(address)
            return response.status_code == 200 and "first try" in response.content.decode()

        before = shows()
        deletion.delete(run, who.user)
        assert not shows()
        assert before

    @pytest.mark.parametrize("part", ["", "events/", "members/", "logs/", "outputs/", "series/"])
    def test_in_the_api(self, who: Principal, run: Run, part: str) -> None:
        api = api_client(who.user)
        assert api.get(f"/api/v1/runs/{run.pk}/{part}").status_code in (200, 400)
        assert api.delete(f"/api/v1/runs/{run.pk}/").status_code == 204
        assert api.get(f"/api/v1/runs/{run.pk}/{part}").status_code == 404
        assert api.get("/api/v1/runs/").json()["results"] == []


class TestDeletedPage:
    def test_shows_when_each_goes_and_how_many_bytes_with_it(self, who: Principal, run: Run) -> None:
        deletion.delete(run, who.user)
        run.refresh_from_db()
        shown = text_of(client_of(make_viewer()), "/runs/deleted/")
        assert "first try" in shown
        assert deletion.PURGE_STARTED.strftime("%Y-") not in shown
        assert "Restore" not in shown

    def test_lets_owners_alone_delete_for_good(self, carl: Client, who: Principal, run: Run) -> None:
        deletion.delete(run, who.user)
        assert "permanently?" not in text_of(carl, "/runs/deleted/")
        assert carl.post(f"/runs/{run.number}/purge/").status_code == 403
        olivia = client_of(make_owner())
        assert "B of files are deleted, with logs and metrics" in text_of(olivia, "/runs/deleted/")
        assert (
            "is being deleted permanently"
            in olivia.post(f"/runs/{run.number}/purge/", follow=True).content.decode()
        )
        assert "in progress" in text_of(olivia, "/runs/deleted/")

    def test_restores_an_experiment_with_its_runs(self, carl: Client, run: Run) -> None:
        shown = carl.post(f"/experiments/{run.experiment_id}/delete/", follow=True).content.decode()
        assert f"/experiments/{run.experiment_id}/restore/" in shown
        assert "first try" not in shown
        carl.post(f"/experiments/{run.experiment_id}/restore/")
        assert carl.get(f"/runs/{run.number}/").status_code == 200

    def test_teaches_what_it_is_for_while_it_is_empty(self, carl: Client) -> None:
        assert "No deleted runs" in text_of(carl, "/runs/deleted/")

    def test_of_another_workspace_nothing_can_be_done(self, who: Principal, run: Run) -> None:
        deletion.delete(run, who.user)
        stranger = client_of(make_stranger())
        for verb in ("restore", "purge"):
            assert stranger.post(f"/runs/{run.number}/{verb}/").status_code == 404


class TestApi:
    def test_lists_restores_and_deletes_for_good(self, who: Principal, run: Run) -> None:
        api, owner = api_client(who.user), api_client(make_owner())
        assert post(owner, f"/api/v1/runs/{run.pk}/purge/").status_code == 404
        api.delete(f"/api/v1/runs/{run.pk}/")
        [row] = api.get("/api/v1/runs/deleted/").json()["results"]
        assert row["id"] == run.pk
        assert row["purged_at"] > row["deleted_at"]
        assert post(api, f"/api/v1/runs/{run.pk}/restore/").json()["state"] == "Completed"
        api.delete(f"/api/v1/runs/{run.pk}/")
        assert post(api, f"/api/v1/runs/{run.pk}/purge/").status_code == 403
        assert post(owner, f"/api/v1/runs/{run.pk}/purge/").status_code == 202
        assert api.get("/api/v1/runs/deleted/").json()["results"][0]["purged_at"] is None
        assert post(api, f"/api/v1/runs/{run.pk}/restore/").status_code == 409

    def test_archives(self, who: Principal, run: Run) -> None:
        api = api_client(who.user)
        assert post(api, f"/api/v1/runs/{run.pk}/archive/").status_code == 200
        assert not Run.objects.listed().exists()
        assert post(api, f"/api/v1/runs/{run.pk}/unarchive/").status_code == 200


class TestConflicts:
    """What cannot be done is said on the page that follows."""

    def test_a_run_that_goes_on_is_not_archived(self, carl: Client, who: Principal) -> None:
        _, active = running(who)
        shown = carl.post(f"/runs/{active.number}/archive/", follow=True).content.decode()
        assert f"Run {active.number} is Running; archive it when it has ended." in shown

    def test_an_experiment_with_a_run_that_goes_on_is_not_deleted(self, carl: Client, who: Principal) -> None:
        _, active = running(who)
        shown = carl.post(f"/experiments/{active.experiment_id}/delete/", follow=True).content.decode()
        assert f"Run {active.number} is Running; cancel it before you delete it." in shown
        assert Run.objects.not_deleted().filter(pk=active.pk).exists()

    def test_a_run_of_a_deleted_experiment_is_restored_after_it(
        self, carl: Client, who: Principal, run: Run
    ) -> None:
        deletion.delete(run, who.user)
        deletion.delete_experiment(run.experiment, who.user)
        shown = carl.post(f"/runs/{run.number}/restore/", follow=True).content.decode()
        assert "is deleted; restore that first." in shown
        assert Run.objects.deleted().filter(pk=run.pk).exists()

    def test_nothing_is_restored_once_its_purge_has_begun(
        self, carl: Client, who: Principal, run: Run
    ) -> None:
        deletion.delete_experiment(run.experiment, who.user)
        run_purge.purge_experiment_now(run.experiment, make_owner())
        path = f"/experiments/{run.experiment_id}/restore/"
        shown = carl.post(path, follow=True).content.decode()
        assert "is being deleted permanently, so it can no longer be restored." in shown
        assert Run.objects.deleted().filter(pk=run.pk).exists()

    def test_only_what_is_deleted_is_purged(self, run: Run) -> None:
        olivia = client_of(make_owner())
        shown = olivia.post(f"/experiments/{run.experiment_id}/purge/", follow=True).content.decode()
        assert "is not deleted; delete it first." in shown
        assert Run.objects.not_deleted().filter(pk=run.pk).exists()
