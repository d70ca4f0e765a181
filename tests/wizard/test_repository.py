"""Code from a git repository on the wizard's pages."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

import pytest
from django.test import Client

from clusters.models import Node
from jobs.models import Draft, FetchedCommit, Run
from jobs.wizard import drafts
from jobs.wizard.source_form import read_source, write_source
from tests.environments.source_builds.git_server import GitServer
from tests.markup import one_line
from tests.wizard.builders import FILES, address, post, preview, under, with_code
from trainhub_launch.spec import GitSource
from trainhub_launch.spec_reader import read_spec
from workspaces.access import Principal


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with GitServer(tmp_path_factory.mktemp("repositories")).serving() as server:
        yield server


def fetch(client: Client, url: str, **fields: str) -> str:
    """Sends the form of the page at `url`, and returns the page that follows."""
    answer = client.post(f"{url}repository/", {f"repository{key}": value for key, value in fields.items()})
    return str(client.get(answer.headers["Location"]).content.decode())


@pytest.mark.usefixtures("valkey")
class TestPages:
    def test_becomes_the_source_of_a_new_draft_with_its_likely_script(
        self, client: Client, who: Principal, git: GitServer, ready: Node
    ) -> None:
        commit = git.commit("new", FILES)
        page = one_line(fetch(client, "/runs/new/", **{"": git.url("new")}))
        assert f"Commit {commit[:10]} of main, 2 files." in page
        assert 'value="train.py"' in page
        draft = Draft.objects.get()
        assert client.post(f"/runs/new/{draft.pk}/submit/").status_code == 302
        assert Run.objects.get().spec["source"]["commit"] == commit
        # A clone's draft has the same commit, and its address to fetch the newest.
        again = drafts.start(who, read_spec(Run.objects.get().spec))
        page = one_line(client.get(address(again, "source")).content.decode())
        assert f"Commit {commit[:10]} of main" in page
        assert f'value="{git.url("new")}"' in page

    def test_what_is_refused_keeps_the_draft_and_what_was_typed(
        self, client: Client, who: Principal, git: GitServer
    ) -> None:
        git.commit("known", FILES)
        draft = with_code(who, arguments="--epochs 3")
        source = draft.steps["source"]["source"]
        page = unescape(fetch(client, f"/runs/new/{draft.pk}/", **{"": git.url("known"), "_ref": "v9"}))
        assert "Branch, tag or commit: http://127.0.0.1" in page
        assert "has no tag, branch or commit v9. Check its spelling." in page
        assert f'value="{git.url("known")}"' in page
        assert 'value="v9"' in page
        draft.refresh_from_db()
        assert draft.steps["source"]["source"] == source
        assert draft.steps["source"]["arguments"] == ["--epochs 3"]
        # Typing in the step afterwards does not lose it either.
        preview(client, draft, "source", script="train.py")
        assert 'value="v9"' in client.get(address(draft, "source")).content.decode()

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"": ""}, "Repository: is required."),
            ({"": "git@github.com:o/n.git"}, "Repository: must begin with https://"),
            ({"": "https://github.com/o/n", "_path": "../x"}, "Folder: '../x' is no folder of a repository"),
        ],
    )
    def test_each_field_is_named(
        self, fields: dict[str, str], words: str, client: Client, who: Principal
    ) -> None:
        assert words in unescape(fetch(client, "/runs/new/", **fields))

    def test_a_password_in_the_address_is_not_kept(self, client: Client, who: Principal) -> None:
        page = fetch(client, "/runs/new/", **{"": "https://me:hunter@2@github.com/o/n"})
        assert "must not hold a password" in page
        assert 'value="https://github.com/o/n"' in page
        assert "hunter" not in str(Draft.objects.get().steps)
        page = unescape(
            fetch(client, "/runs/new/", **{"": "https://me:${TOKEN}@github.com/o/n", "_ref": "a..b"})
        )
        assert 'value="https://me:${TOKEN}@github.com/o/n"' in page

    def test_a_script_that_is_not_in_it_is_said_under_the_script(
        self, client: Client, who: Principal, git: GitServer, ready: Node
    ) -> None:
        git.commit("script", FILES)
        fetch(client, "/runs/new/", **{"": git.url("script")})
        page = preview(client, Draft.objects.get(), "source", script="trian.py")
        assert "did you mean train.py?" in under(page, "script")

    def test_a_source_that_the_browser_made_up_is_none(self, client: Client, who: Principal) -> None:
        forged = GitSource("https://github.com/o/n", commit="0" * 40, id="0" * 64)
        draft = with_code(who, source=write_source(forged))
        assert "Its files are not here; fetch them." in client.get(address(draft, "source")).content.decode()
        assert post(client, draft, "source", script="train.py").status_code == 422
        for text in ("git:", "git:x", "git:{}", "git:[1]", 'git:{"url": 3}', f"git:{'[' * 9999}"):
            assert read_source(text) is None
        assert read_source(write_source(forged)) == forged
        assert not FetchedCommit.objects.exists()
