"""Private repositories over SSH: a deploy key stored as a secret, and a host whose key an operator has
listed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from environments.repositories import temporary_folder
from jobs.models import RunTag
from jobs.sources import git_sources
from tests.environments.source_builds.git_server import GitServer
from tests.environments.source_builds.ssh_server import SshServer, make_key
from tests.jobs.builders import queued
from tests.jobs.sources.repositories import HELLO
from tests.people import make_owner, principal_of
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import GitSource
from workspaces.access import Principal
from workspaces.models import SecretUse
from workspaces.secrets import store

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory, git: GitServer) -> Iterator[SshServer]:
    git.commit("private", HELLO)
    with SshServer(tmp_path_factory.mktemp("ssh"), git.folder).serving() as server:
        yield server


@pytest.fixture(autouse=True)
def known_hosts(ssh: SshServer, tmp_path: Path, settings: Any) -> Path:
    settings.SECRETS_KEYRING = str(tmp_path / "keyring")
    file = tmp_path / "known-hosts"
    file.write_text(ssh.host_key)
    settings.GIT_KNOWN_HOSTS = str(file)
    return file


def put_key(text: str) -> None:
    store.put(principal_of(make_owner()), "DEPLOY_KEY", text, store.WORKSPACE)


def refusal(who: Principal, url: str) -> str:
    with pytest.raises(SpecError) as error:
        git_sources.fetch(GitSource(url), who)
    assert error.value.field == "source.url"
    assert "PRIVATE KEY" not in error.value.message
    return error.value.message


class TestDeployKey:
    def test_fetches_what_it_may_read(self, who: Principal, ssh: SshServer) -> None:
        # As a form sends it: other line ends, and none at the end.
        put_key(ssh.key.strip().replace("\n", "\r\n"))
        url = ssh.url("private")
        run = queued(who, source={"type": "git", "url": url})
        assert run.spec["source"]["url"] == url
        tags = dict(RunTag.objects.filter(run=run).values_list("key", "value"))
        bare = f"ssh://127.0.0.1:{ssh.port}{ssh.repositories}/private.git"
        assert tags["mlflow.source.git.repoURL"] == bare
        assert tags["mlflow.source.git.branch"] == "main"
        use = SecretUse.objects.get()
        assert (use.kind, use.subject) == ("source", bare)

    def test_leaves_no_trace_on_the_disk(
        self, who: Principal, ssh: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = tmp_path / "temporary"
        place.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(place))
        put_key(ssh.key)
        git_sources.fetch(GitSource(ssh.url("private")), who)
        assert list(place.iterdir()) == []

    def test_what_a_killed_hub_left_of_it_is_removed(
        self, who: Principal, ssh: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        monkeypatch.setattr(temporary_folder, "YOUNG_S", -1.0)
        (tmp_path / "trainhub-repository-left").mkdir()
        (tmp_path / "trainhub-repository-left" / "key").write_text(ssh.key)
        with temporary_folder.open_temporary_folder() as current:
            put_key(ssh.key)
            git_sources.fetch(GitSource(ssh.url("private")), who)
            assert list(tmp_path.glob("trainhub-repository-*")) == [current]

    def test_another_key_is_refused_by_the_server(
        self, who: Principal, ssh: SshServer, tmp_path: Path
    ) -> None:
        put_key(make_key(tmp_path / "other"))
        assert "refuses the user or the secret DEPLOY_KEY" in refusal(who, ssh.url("private"))

    def test_what_is_no_key_is_said_without_asking_the_server(self, who: Principal, ssh: SshServer) -> None:
        put_key("ssh-ed25519 AAAA the public one")
        assert "is no private key; store all of the file" in refusal(who, ssh.url("private"))

    def test_one_with_a_passphrase_is_refused(self, who: Principal, ssh: SshServer, tmp_path: Path) -> None:
        put_key(make_key(tmp_path / "locked", "a long passphrase"))
        assert "is a key with a passphrase; store one without" in refusal(who, ssh.url("private"))

    def test_a_repository_that_is_not_there(self, who: Principal, ssh: SshServer) -> None:
        put_key(ssh.key)
        message = refusal(who, ssh.url("nothing"))
        assert "could not be fetched" in message
        assert "nothing.git' does not appear to be a git repository" in message

    def test_is_needed(self, who: Principal, ssh: SshServer) -> None:
        assert "no secret DEPLOY_KEY" in refusal(who, ssh.url("private"))


class TestHostKey:
    def test_the_remedy_for_an_unknown_one_helps(
        self, who: Principal, ssh: SshServer, known_hosts: Path
    ) -> None:
        known_hosts.unlink()
        put_key(ssh.key)
        message = refusal(who, ssh.url("private"))
        assert f"does not know the host key of [127.0.0.1]:{ssh.port}" in message
        scan = message[message.index("ssh-keyscan") :].partition(" prints it")[0]
        with known_hosts.open("w") as file:
            subprocess.run(scan.split(), stdout=file, stderr=subprocess.DEVNULL, check=True)
        assert git_sources.fetch(GitSource(ssh.url("private")), who).commit

    def test_another_one_than_the_listed_is_refused_with_a_remedy(
        self, who: Principal, ssh: SshServer, known_hosts: Path, tmp_path: Path
    ) -> None:
        make_key(tmp_path / "impostor")
        kind, key = (tmp_path / "impostor.pub").read_text().split()[:2]
        known_hosts.write_text(f"[127.0.0.1]:{ssh.port} {kind} {key}\n")
        put_key(ssh.key)
        message = refusal(who, ssh.url("private"))
        assert "shows another host key" in message
        remove = message[message.index("ssh-keygen -f") :].rstrip(".").replace("'", "")
        subprocess.run(remove.split(), check=True, capture_output=True)
        assert known_hosts.read_text() == ""
        assert "does not know the host key" in refusal(who, ssh.url("private"))


def test_a_server_that_does_not_listen(who: Principal, ssh: SshServer) -> None:
    put_key(ssh.key)
    url = ssh.url("private").replace(f":{ssh.port}/", ":1/")
    assert "cannot be reached over SSH" in refusal(who, url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("git@example.org:owner/name.git", r"write ssh://\$\{NAME\}@host/owner/name"),
        ("ssh://git@example.org/owner/name", r"with a deploy key alone: store the deploy key as a secret"),
        ("ssh://example.org/owner/name", r"with a deploy key alone"),
        ("ssh://git:hunter2@example.org/owner/name", r"with a deploy key alone"),
        ("ssh://git:${A}@example.org/", r"names its path"),
        ("ssh://-oProxyCommand=touch:${A}@example.org/a", r"the user of a repository must have"),
        ("ssh://git:${DEPLOY_KEY}@-oProxyCommand=touch/owner/name", r"is not known"),
    ],
)
def test_what_cannot_be_an_address(url: str, words: str, who: Principal) -> None:
    put_key("any")
    with pytest.raises(SpecError, match=words) as error:
        git_sources.fetch(GitSource(url), who)
    assert "hunter2" not in error.value.message
