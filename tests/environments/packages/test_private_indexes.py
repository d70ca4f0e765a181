"""Indexes that want a password, which is a secret of the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from environments import changes, tasks
from environments.lock_file import read_lock
from environments.models import EnvironmentVersion
from environments.packages.private_logins import index_login
from environments.packages.upstream import FetchFailed, download_package
from environments.requirement_list import read_requirements
from tests.environments.package_index import PackageIndex
from tests.people import make_owner, principal_of
from trainhub_launch.errors import SpecError
from workspaces.access import Principal
from workspaces.models import AuditEvent, SecretUse
from workspaces.secrets import store

PASSWORD = "pw-of/the@index"


@pytest.fixture
def private(index: PackageIndex, tmp_path: Path, settings: Any) -> Iterator[PackageIndex]:
    """An index with `ours`, which wants a password, beside the one that pip is configured to use."""
    settings.SECRETS_KEYRING = str(tmp_path / "keyring")
    (tmp_path / "private").mkdir()
    with PackageIndex(tmp_path / "private").serving() as served:
        served.login = f"reader:{PASSWORD}"
        served.add("ours", "3.0")
        yield served


def address(index: PackageIndex, credentials: str) -> str:
    return index.url.replace("http://", f"http://{credentials}@")


def keep_secret(name: str, value: str, scope: str = store.WORKSPACE) -> None:
    store.put(principal_of(make_owner()), name, value, scope)


def resolved(who: Principal, requirements: str) -> EnvironmentVersion:
    version = changes.create_version(who, "mine", "pip", requirements, "3.11")
    tasks.resolve_environment(version.pk)
    version.refresh_from_db()
    return version


def test_the_hub_signs_in_with_the_secret(who: Principal, index: PackageIndex, private: PackageIndex) -> None:
    keep_secret("INDEX_PASSWORD", PASSWORD)
    index.add("tinylib")
    line = f"--extra-index-url {address(private, 'reader:${INDEX_PASSWORD}')}"
    version = resolved(who, f"{line}\nours\ntinylib\n")
    assert version.is_locked, version.failure
    assert version.lock.startswith(f"--extra-index-url {private.url}\n")
    assert [package.name for package in read_lock(version.lock)] == ["ours", "tinylib"]
    assert PASSWORD not in version.lock
    assert "reader" not in version.lock
    use = SecretUse.objects.get()
    assert (use.kind, use.subject, use.secret.name) == ("environment", "mine 1", "INDEX_PASSWORD")
    event = AuditEvent.objects.get(verb="secret.used")
    assert event.actor == who.user.username


def test_user_and_password_of_the_main_index_can_both_be_secrets(
    who: Principal, index: PackageIndex, private: PackageIndex
) -> None:
    keep_secret("user", "reader")
    keep_secret("index-password", PASSWORD)
    version = resolved(who, f"-i {address(private, '${user}:${index-password}')}\nours\n")
    assert version.is_locked, version.failure


def test_a_wrong_secret_is_named(who: Principal, index: PackageIndex, private: PackageIndex) -> None:
    keep_secret("INDEX_PASSWORD", "another-password")
    version = resolved(who, f"-i {address(private, 'reader:${INDEX_PASSWORD}')}\nours\n")
    assert version.failure == (
        f"The index at {private.url} refuses the user or the secret INDEX_PASSWORD. Store its right value at "
        "/settings/secrets/, and make the version again."
    )


@pytest.mark.parametrize("scope", ["", store.PERSON])
def test_a_secret_that_the_workspace_lacks_is_named(
    who: Principal, index: PackageIndex, private: PackageIndex, scope: str
) -> None:
    if scope:
        store.put(who, "INDEX_PASSWORD", PASSWORD, scope)
    version = resolved(who, f"-i {address(private, 'reader:${INDEX_PASSWORD}')}\nours\n")
    assert "needs the secret INDEX_PASSWORD, and the workspace has no such secret" in version.failure
    assert private.requests == []


def test_an_index_that_wants_a_password_and_gets_none(
    who: Principal, index: PackageIndex, private: PackageIndex
) -> None:
    version = resolved(who, f"-i {private.url}\nours\n")
    assert "asks for a password. Store it as a secret" in version.failure


def test_the_unresolved_message_of_uv_is_masked(
    who: Principal, index: PackageIndex, private: PackageIndex
) -> None:
    keep_secret("TOKEN", "ours==9")
    private.login = "ours==9:"
    version = resolved(who, f"-i {address(private, '${TOKEN}')}\nours==9\n")
    assert "****" in version.failure
    assert "ours==9" not in version.failure


@pytest.mark.parametrize(
    ("user_info", "words"),
    [
        ("me:plain", "store it as a secret of the workspace at /settings/secrets/"),
        ("token", "store it as a secret"),
        ("me:", "store it as a secret"),
        ("me:x${NAME}", "store it as a secret"),
        ("me:$NAME", "store it as a secret"),
        ("m(e:${NAME}", "the user of an index must have"),
    ],
)
def test_other_credentials_are_refused(user_info: str, words: str) -> None:
    with pytest.raises(SpecError) as error:
        read_requirements(f"--index-url https://{user_info}@host/simple\nx")
    assert error.value.message.startswith("line 1: ")
    assert words in error.value.message


def test_also_those_below_pip_in_a_conda_file(who: Principal, private: PackageIndex) -> None:
    keep_secret("INDEX_PASSWORD", PASSWORD)
    index = f"-i {address(private, 'reader:${INDEX_PASSWORD}')}"
    source = f"dependencies:\n- python\n- pip:\n  - {index}\n  - ours\n"
    version = changes.create_version(who, "snake", "conda", source)
    login = index_login(version, "http", private.url.split("/")[2])
    assert login is not None
    assert (login.username, login.password) == ("reader", PASSWORD)


def test_the_hub_fetches_the_wheels_for_nodes_with_the_secret(
    who: Principal, index: PackageIndex, private: PackageIndex
) -> None:
    keep_secret("INDEX_PASSWORD", PASSWORD)
    version = resolved(who, f"-i {address(private, 'reader:${INDEX_PASSWORD}')}\nours\n")
    wheel = version.files.get(project="ours")
    assert download_package(wheel) == (private.folder / wheel.filename).stat().st_size
    assert PASSWORD not in wheel.url
    private.login = "reader:another password"
    with pytest.raises(FetchFailed, match="answers 401"):
        download_package(wheel)
