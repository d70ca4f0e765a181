"""Fetches one commit of a repository without its history, and tells in sentences why that failed."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from environments.indexes.index_address import IndexCredentials
from environments.indexes.index_secrets import mask_credentials
from environments.repositories import ssh_access
from environments.repositories.git_process import (
    MAX_FILE_BYTES,
    MAX_S,
    GitFailed,
    GitFolder,
    RepositoryFailed,
)
from environments.repositories.repository_address import Repository

_PART_OF_COMMIT = re.compile(r"[0-9a-f]{6,39}\Z")
_STATUS = re.compile(r"The requested URL returned error: (\d{3})")
MAX_LENGTH = 500


def fetch_commit(
    folder: Path, repository: Repository, login: IndexCredentials | None, *, seconds: float = MAX_S
) -> tuple[GitFolder, str]:
    """Fetches the commit that the repository's tag or branch names now into `folder`, which is empty. Returns
    git in that folder, and the commit's whole name. `login`: the credentials with their values; `seconds`:
    for this and all that follows in the folder. Raises RepositoryFailed."""
    try:
        git = GitFolder(folder, repository.url, login, seconds=seconds)
        fetch = ("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--")
        git.run(*fetch, repository.url, repository.ref)
        return git, git.run("rev-parse", "--quiet", "--verify", "FETCH_HEAD^{commit}")
    except GitFailed as error:
        logins = [login] if login is not None else []
        message = mask_credentials(str(error), logins)
        if re.search(r"find remote ref|not our ref|unadvertised object", message):
            raise RepositoryFailed(_unknown_ref(repository), "ref") from error
        raise RepositoryFailed(_reason(repository, message, error)) from error


def own_commit(git: GitFolder, repository: Repository, commit: str) -> str:
    """Makes a commit of the repository's folder alone, which has a fixed time, and returns its name. Raises
    RepositoryFailed if there is no such folder."""
    try:
        tree = git.run("rev-parse", "--quiet", "--verify", f"{commit}:{repository.subdirectory}")
        return git.run("commit-tree", "-m", repository.address(commit), tree)
    except GitFailed as error:
        raise RepositoryFailed(
            f"{repository.url} has no folder {repository.subdirectory} in its commit {commit}. Check its "
            "spelling.",
            "path",
        ) from error


def shortened(message: str) -> str:
    """Returns what git wrote in one line, without what follows after `MAX_LENGTH` characters."""
    text = " ".join(message.replace("fatal: ", "").split()) or "git wrote no message"
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"


def _unknown_ref(repository: Repository) -> str:
    url, ref = repository.url, repository.ref
    if _PART_OF_COMMIT.match(ref):
        return f"{url} has no tag or branch {ref}. Of a commit, write all 40 digits."
    return f"{url} has no tag, branch or commit {ref}. Check its spelling."


def _reason(repository: Repository, message: str, error: GitFailed) -> str:
    url = repository.url
    if error.is_timeout or "Operation too slow" in message or "timed out" in message.lower():
        return f"The repository at {url} did not answer in time; check its address, or try again later."
    if "index-pack" in message or "File too large" in message:
        return (
            f"The files of {url} have more than {MAX_FILE_BYTES // 2**20} MiB, or are damaged: "
            f"{shortened(message)}. Keep large files out of the repository."
        )
    if "dumb http" in message:
        return f"{url} serves plain files, of which git fetches no commit alone; name a git server's address."
    status = _STATUS.search(message)
    if status is not None and status[1].startswith("3"):
        return f"{url} leads to another address; write that one instead, often with .git at its end."
    sentence = _ssh_reason(repository, message)
    if sentence:
        return sentence
    refused = status is not None and status[1] in ("401", "403")
    if refused or "could not read Username" in message or "Authentication failed" in message:
        return _refused_login(repository)
    if "not found" in message:
        return f"There is no repository at {url}, or it wants a password. Check its address. {_login_hint()}"
    return f"The repository at {url} could not be fetched: {shortened(message)}"


def _ssh_reason(repository: Repository, message: str) -> str:
    """Returns what a message of ssh means, "" for any other."""
    parts = urlsplit(repository.url)
    if parts.scheme != "ssh":
        return ""
    name, place = ssh_access.host_name(parts), settings.GIT_KNOWN_HOSTS
    if "HOST IDENTIFICATION HAS CHANGED" in message:
        return (
            f"The server {name} shows another host key than the one in {place} on the hub's machine. An "
            "operator finds out whether the server has a new one, or somebody answers in its place, before "
            f"they remove the old one: ssh-keygen -f {place} -R '{name}'."
        )
    if "Host key verification failed" in message or "host key is known" in message:
        port = f"-p {parts.port} " if parts.port else ""
        return (
            f"The hub does not know the host key of {name}. An operator adds it to {place} on the hub's "
            f"machine (ssh-keyscan {port}{parts.hostname} prints it), once it is the one that the server's "
            "documentation names; then try again."
        )
    if "Permission denied" in message:
        return _refused_login(repository)
    if "Connection timed out" in message or "No route to host" in message or "Connection refused" in message:
        return f"The server {name} cannot be reached over SSH: {shortened(message)}"
    return ""


def _refused_login(repository: Repository) -> str:
    if repository.credentials is not None:
        names = " and ".join(sorted(repository.credentials.secret_names))
        return (
            f"The repository at {repository.url} refuses the user or the secret {names}. Store its right "
            "value at /settings/secrets/, and try again."
        )
    return f"The repository at {repository.url} wants a password, or does not exist. {_login_hint()}"


def _login_hint() -> str:
    return (
        "For a private one, store a token as a secret at /settings/secrets/, and write ${NAME}@ with the "
        "secret's name before the host, as in https://${NAME}@host/owner/name."
    )
