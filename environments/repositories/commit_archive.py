"""The files of one commit of a repository as an archive, which is the same whenever it is made."""

from __future__ import annotations

import gzip
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from environments.indexes.index_address import IndexCredentials
from environments.indexes.index_secrets import mask_credentials
from environments.repositories.git_process import MAX_FILE_BYTES, GitFailed, GitFolder, RepositoryFailed
from environments.repositories.repository_address import Repository

COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_PART_OF_COMMIT = re.compile(r"[0-9a-f]{6,39}\Z")
_STATUS = re.compile(r"The requested URL returned error: (\d{3})")
MAX_LENGTH = 500


@dataclass(frozen=True)
class CommitArchive:
    """`commit`: its whole name. `path`: the file (.tar.gz), with all files of the package in one folder."""

    commit: str
    path: Path


@contextmanager
def open_commit_archive(
    repository: Repository, login: IndexCredentials | None, name: str
) -> Iterator[CommitArchive]:
    """Fetches the commit that the repository's tag or branch names now, without its history. `login`: the
    credentials with their values; `name`: of the folder in the archive. Raises RepositoryFailed."""
    with tempfile.TemporaryDirectory(prefix="trainhub-repository-") as path:
        folder = Path(path)
        try:
            git = GitFolder(folder, repository.url, login)
            fetch = ("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--")
            git.run(*fetch, repository.url, repository.ref)
            commit = git.run("rev-parse", "--quiet", "--verify", "FETCH_HEAD^{commit}")
        except GitFailed as error:
            logins = [login] if login is not None else []
            raise RepositoryFailed(
                _reason(repository, mask_credentials(str(error), logins), error)
            ) from error
        yield CommitArchive(commit, _archive(git, folder, repository, commit, f"{name}-{commit}"))


def _archive(git: GitFolder, folder: Path, repository: Repository, commit: str, name: str) -> Path:
    tar, path = folder / "files.tar", folder / "files.tar.gz"
    try:
        tree = git.run("rev-parse", "--quiet", "--verify", f"{commit}:{repository.subdirectory}")
        # A commit with a time of its own for these files alone.
        own = git.run("commit-tree", "-m", repository.address(commit), tree)
    except GitFailed as error:
        raise RepositoryFailed(
            f"{repository.url} has no folder {repository.subdirectory} in its commit {commit}. Correct "
            "subdirectory=."
        ) from error
    try:
        git.run("archive", "--format=tar", f"--prefix={name}/", f"--output={tar}", own)
    except GitFailed as error:
        raise RepositoryFailed(
            f"The files of {repository.url} have more than {MAX_FILE_BYTES // 2**20} MiB, or could not be "
            f"read: {_shortened(str(error))}. Name a smaller folder with subdirectory=, or install a release "
            "of an index."
        ) from error
    with tar.open("rb") as source, gzip.GzipFile(path, "wb", compresslevel=6, mtime=0) as target:
        shutil.copyfileobj(source, target, 2**20)
    return path


def _reason(repository: Repository, message: str, error: GitFailed) -> str:
    url, ref = repository.url, repository.ref
    if error.is_timeout or "Operation too slow" in message or "timed out" in message.lower():
        return f"The repository at {url} did not answer in time; check its address, or try again later."
    if "find remote ref" in message or "not our ref" in message or "unadvertised object" in message:
        if _PART_OF_COMMIT.match(ref):
            return f"{url} has no tag or branch {ref}. Of a commit, write all 40 digits."
        return f"{url} has no tag, branch or commit {ref}. Check its spelling."
    if "index-pack" in message or "File too large" in message:
        return (
            f"The files of {url} have more than {MAX_FILE_BYTES // 2**20} MiB, or are damaged: "
            f"{_shortened(message)}. Install a release of an index instead."
        )
    if "dumb http" in message:
        return f"{url} serves plain files, of which git fetches no commit alone; name a git server's address."
    status = _STATUS.search(message)
    if status is not None and status[1].startswith("3"):
        return f"{url} leads to another address; write that one instead, often with .git at its end."
    refused = status is not None and status[1] in ("401", "403")
    if refused or "could not read Username" in message or "Authentication failed" in message:
        return _refused_login(repository)
    if "not found" in message:
        return f"There is no repository at {url}, or it wants a password. Check its address. {_login_hint()}"
    return f"The repository at {url} could not be fetched: {_shortened(message)}"


def _refused_login(repository: Repository) -> str:
    if repository.credentials is not None:
        names = " and ".join(sorted(repository.credentials.secret_names))
        return (
            f"The repository at {repository.url} refuses the user or the secret {names}. Store its right "
            "value at /settings/secrets/, and make the version again."
        )
    return f"The repository at {repository.url} wants a password, or does not exist. {_login_hint()}"


def _login_hint() -> str:
    return (
        "For a private one, store a token as a secret of the workspace at /settings/secrets/, and write "
        "git+https://${NAME}@host/owner/name with the secret's name."
    )


def _shortened(message: str) -> str:
    text = " ".join(message.replace("fatal: ", "").split()) or "git wrote no message"
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"
