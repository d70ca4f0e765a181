"""The files of one commit of a repository as an archive, which is the same whenever it is made."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from environments.indexes.index_address import IndexCredentials
from environments.repositories.commit_fetch import fetch_commit, own_commit, shortened
from environments.repositories.git_process import MAX_FILE_BYTES, GitFailed, GitFolder, RepositoryFailed
from environments.repositories.repository_address import Repository
from environments.repositories.temporary_folder import open_temporary_folder


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
    with open_temporary_folder() as folder:
        git, commit = fetch_commit(folder, repository, login)
        yield CommitArchive(commit, _archive(git, folder, repository, commit, f"{name}-{commit}"))


def _archive(git: GitFolder, folder: Path, repository: Repository, commit: str, name: str) -> Path:
    tar, path = folder / "files.tar", folder / "files.tar.gz"
    own = own_commit(git, repository, commit)
    try:
        git.run("archive", "--format=tar", f"--prefix={name}/", f"--output={tar}", own)
    except GitFailed as error:
        raise RepositoryFailed(
            f"The files of {repository.url} have more than {MAX_FILE_BYTES // 2**20} MiB, or could not be "
            f"read: {shortened(str(error))}. Name a smaller folder with subdirectory=, or install a release "
            "of an index."
        ) from error
    with tar.open("rb") as source, gzip.GzipFile(path, "wb", compresslevel=6, mtime=0) as target:
        shutil.copyfileobj(source, target, 2**20)
    return path
