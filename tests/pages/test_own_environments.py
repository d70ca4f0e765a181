"""The pages on which people make environments of their own."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from environments.models import EnvironmentVersion
from environments.states import VersionState
from tests.environments.locks import LOCK, failed, locked
from tests.jobs.builders import node, queued
from tests.pages.builders import HTMX, text_of
from tests.people import client_of, make_contributor, make_viewer, principal_of
from workspaces.access import Principal

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


@pytest.fixture
def who(db: None) -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def browser(who: Principal) -> Client:
    return client_of(who.user)


def seen(address: str, **headers: str) -> str:
    return text_of(client_of(make_viewer()), address, **headers)


class TestForm:
    def test_makes_an_environment_and_shows_it(self, browser: Client) -> None:
        answer = browser.post(
            "/environments/new/", {"name": "mine", "python": "3.11", "source": "numpy\r\npandas\r\n"}
        )
        assert (answer.status_code, answer["Location"]) == (302, "/environments/mine/versions/1/")
        assert EnvironmentVersion.objects.get().source == "numpy\npandas\n"

    def test_a_file_replaces_what_is_typed(self, browser: Client) -> None:
        file = SimpleUploadedFile("requirements.txt", b"\xef\xbb\xbfscipy\r\n")
        browser.post(
            "/environments/new/", {"name": "mine", "python": "3.11", "source": "numpy", "file": file}
        )
        assert EnvironmentVersion.objects.get().source == "scipy\n"

    @pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * 600_000], ids=["binary", "large"])
    def test_a_file_that_is_none_is_refused(self, browser: Client, content: bytes) -> None:
        file = SimpleUploadedFile("requirements.txt", content)
        answer = browser.post("/environments/new/", {"name": "mine", "python": "3.11", "file": file})
        assert answer.status_code == 400
        assert "choose a " in answer.content.decode()

    def test_says_what_is_wrong_beside_the_field_and_keeps_what_was_typed(self, browser: Client) -> None:
        answer = browser.post(
            "/environments/new/", {"name": "mine", "python": "3.11", "source": "numpy\n-e .<b>"}
        )
        text = answer.content.decode()
        assert answer.status_code == 400
        assert 'id="source-error" role="alert">Line 2: -e is not possible here' in text
        assert "numpy\n-e .&lt;b&gt;</textarea>" in text
        answer = browser.post("/environments/new/", {"name": "TrainHub-x", "python": "3.11", "source": "x"})
        assert "belong to curated environments" in answer.content.decode()

    def test_editing_begins_with_the_version_and_makes_the_next(
        self, browser: Client, who: Principal
    ) -> None:
        failed(who)
        locked(who, requirements="tinylib==1.0")
        assert "\nx</textarea>" in text_of(browser, "/environments/mine/edit/?from=1")
        assert "tinylib==1.0</textarea>" in text_of(browser, "/environments/mine/edit/")
        browser.post("/environments/mine/edit/", {"python": "3.12", "source": "tinylib==2.0"})
        newest = EnvironmentVersion.objects.order_by("-number")[0]
        assert (newest.number, newest.python, newest.source) == (3, "3.12", "tinylib==2.0")

    def test_says_which_pythons_the_nodes_have(self, browser: Client) -> None:
        node("alpha")
        assert "The nodes have 3.11." in text_of(browser, "/environments/new/")

    def test_is_not_for_viewers(self, who: Principal) -> None:
        locked(who)
        viewer = client_of(make_viewer())
        for address in ("/environments/new/", "/environments/mine/edit/"):
            assert viewer.get(address).status_code == 403
        for address in ("/environments/", "/environments/mine/", "/environments/mine/versions/1/"):
            assert "/environments/new/" not in seen(address)
            assert "/edit/" not in seen(address)


class TestList:
    def test_shows_own_ones_with_their_newest_version(self, who: Principal) -> None:
        locked(who, requirements="tinylib")
        failed(who)
        text = seen("/environments/")
        assert text.index("/environments/mine/") < text.index("/environments/TrainHub-PyTorch-2.13/")
        assert "pip, version 2" in text
        assert "Failed" in text

    def test_is_searched_by_name_and_package(self, who: Principal) -> None:
        locked(who, "mine", "tinylib")
        assert "/environments/mine/" in seen("/environments/?q=tiny", **HTMX)
        assert "/environments/mine/" in seen("/search/palette/?q=tinylib") + seen("/search/?q=tinylib")
        assert "/environments/mine/" not in seen("/environments/?q=torch", **HTMX)


class TestVersion:
    def test_refreshes_until_it_is_resolved(self, who: Principal) -> None:
        version = locked(who)
        address = "/environments/mine/versions/1/"
        assert "every 2s" not in seen(address)
        EnvironmentVersion.objects.filter(pk=version.pk).update(state=VersionState.RESOLVING, lock="")
        part = seen(address, **HTMX)
        assert "every 2s" in part
        assert "<html" not in part

    def test_shows_packages_source_and_runs(self, who: Principal) -> None:
        locked(who, requirements="# <i>why\ntinylib")
        run = queued(who, environment={"name": "mine"}, display_name="uses it")
        text = seen("/environments/mine/versions/1/")
        assert "# &lt;i&gt;why" in text
        for words in ("tinylib", "1.0", f'href="/runs/{run.number}/"', "0 of", "Prepared on"):
            assert words in text, words

    def test_says_why_it_failed_and_leads_to_the_next_version(self, browser: Client, who: Principal) -> None:
        failed(who, failure="No index has a package <x>.")
        text = text_of(browser, "/environments/mine/versions/1/")
        assert "No index has a package &lt;x&gt;." in text
        assert 'href="/environments/mine/edit/?from=1"' in text
        assert "New run with it" not in text

    def test_is_downloaded_as_files(self, browser: Client, who: Principal) -> None:
        locked(who, requirements="tinylib\n")
        for file, content in (("requirements.txt", "tinylib\n"), ("requirements.lock", LOCK)):
            answer = browser.get(f"/environments/mine/versions/1/{file}")
            assert answer.content.decode() == content
            assert f'filename="mine-1-{file}"' in answer["Content-Disposition"]
        assert browser.get("/environments/mine/versions/1/other").status_code == 404

    def test_is_compared_with_another(self, who: Principal) -> None:
        locked(who)
        locked(who, lock=LOCK.replace("tinylib==1.0", "tinylib==2.0"))
        text = seen("/environments/mine/versions/2/?with=1")
        assert '<td class="th-mono">1.0</td><td class="th-mono">2.0</td>' in text
        assert "Both have the same packages" not in text

    @pytest.mark.parametrize(
        "path", ["mine/versions/2/", "nope/versions/1/", "mine/versions/99999999999999999999/", "nope/edit/"]
    )
    def test_that_is_not_there_is_not_found(self, browser: Client, who: Principal, path: str) -> None:
        locked(who)
        assert browser.get(f"/environments/{path}").status_code == 404


class TestClone:
    def test_of_own_and_curated_ones(self, browser: Client, who: Principal) -> None:
        locked(who, requirements="tinylib")
        assert 'action="/environments/mine/clone/"' in text_of(browser, "/environments/mine/")
        curated = "TrainHub-PyTorch-2.13"
        assert f'action="/environments/{curated}/clone/"' in text_of(browser, f"/environments/{curated}/")
        answer = browser.post("/environments/mine/clone/", {"new_name": "yours", "version": "1"})
        assert answer["Location"] == "/environments/yours/versions/1/"
        answer = browser.post(f"/environments/{curated}/clone/", {"new_name": "torch"})
        assert answer["Location"] == "/environments/torch/versions/1/"
        assert "torch==2.13.0" in EnvironmentVersion.objects.get(environment__name="torch").source

    def test_says_why_not(self, browser: Client, who: Principal) -> None:
        locked(who)
        answer = browser.post("/environments/mine/clone/", {"new_name": "mine"}, follow=True)
        assert "It was not cloned: there is an environment" in answer.content.decode()
