"""The files of one commit of a repository in a folder of the hub's disk, for as long as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from environments.indexes.index_address import IndexCredentials
from environments.indexes.index_secrets import mask_credentials
from environments.repositories.commit_fetch import fetch_commit, own_commit, shortened
from environments.repositories.git_process import GitFailed, GitFolder, RepositoryFailed
from environments.repositories.repository_address import DEFAULT_BRANCH, Repository
from environments.repositories.temporary_folder import open_temporary_folder

# A request waits for it: less than the time after which proxies give up.
MAX_S = 45.0
# Before anything is written; how much of that a run may have is decided by whoever reads the folder.
MAX_FILES = 100_000
MAX_BYTES = 2 * 2**30
_LIST_BYTES = 32 * 2**20
_SUBMODULE = "160000"
_BRANCHES = "refs/heads/"
# What stands at the beginning of a file whose content is elsewhere (Git LFS); the whole has at most 1,024.
_POINTER, _MAX_POINTER_BYTES = b"version https://git-lfs.github.com/spec/", 1024


@dataclass(frozen=True)
class CommitFolder:
    """`commit`: its whole name. `branch`: the one that was named, or the repository's default one; "" if a
    tag or a commit was named. `path`: where its files are. `submodules`: folders that belong to other
    repositories, which are empty here. `pointers`: files whose content Git LFS keeps elsewhere."""

    commit: str
    branch: str
    path: Path
    submodules: tuple[str, ...]
    pointers: tuple[str, ...]


@contextmanager
def open_commit_folder(repository: Repository, login: IndexCredentials | None) -> Iterator[CommitFolder]:
    """Fetches the commit that the repository's tag or branch names now, without its history, and yields the
    files of its folder. `login`: the credentials with their values. Raises RepositoryFailed."""
    with open_temporary_folder() as folder:
        git, commit = fetch_commit(folder, repository, login, seconds=MAX_S)
        try:
            branch = _branch(git, repository)
            own = own_commit(git, repository, commit)
            small, submodules = _read_list(git, own, repository)
            files = folder / "files"
            files.mkdir()
            git.run(f"--work-tree={files}", "checkout", "--quiet", "--force", own, "--", ".")
        except GitFailed as error:
            message = mask_credentials(str(error), [login] if login is not None else [])
            raise RepositoryFailed(
                f"The files of {repository.url} could not be read: {shortened(message)}"
            ) from error
        yield CommitFolder(commit, branch, files, submodules, _pointers(files, small))


def _branch(git: GitFolder, repository: Repository) -> str:
    ref = repository.ref
    pattern = ref if ref == DEFAULT_BRANCH else f"{_BRANCHES}{ref}"
    for line in git.run("ls-remote", "--symref", "--", repository.url, pattern).splitlines():
        target, _, name = line.partition("\t")
        if target.startswith(f"ref: {_BRANCHES}") and name == ref == DEFAULT_BRANCH:
            return target.removeprefix(f"ref: {_BRANCHES}")
        if name == f"{_BRANCHES}{ref}":
            return ref
    return ""


def _read_list(git: GitFolder, commit: str, repository: Repository) -> tuple[list[str], tuple[str, ...]]:
    """Returns the paths of the files that are small enough to be a pointer, and those of submodules. Raises
    RepositoryFailed for more files than can be written."""
    # Each is "MODE TYPE OBJECT SIZE<tab>PATH".
    listing = git.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit, most_bytes=_LIST_BYTES)
    lines = [line for line in listing.split("\0") if line]
    small: list[str] = []
    submodules: list[str] = []
    total = 0
    for line in lines:
        facts, _, path = line.partition("\t")
        mode, _, _, size = [*facts.split(), "", "", ""][:4]
        if mode == _SUBMODULE:
            submodules.append(path)
        elif size.isdecimal():
            total += int(size)
            if int(size) <= _MAX_POINTER_BYTES:
                small.append(path)
    if len(listing) >= _LIST_BYTES or len(lines) > MAX_FILES or total > MAX_BYTES:
        where = f"the folder {repository.subdirectory} of it" if repository.subdirectory else "it"
        raise RepositoryFailed(
            f"{repository.url} is too large: {where} has {len(lines):,} files with {total / 2**20:,.0f} MiB, "
            f"and at most {MAX_FILES:,} files with {MAX_BYTES // 2**20:,} MiB are read. Name a smaller "
            "folder of it."
        )
    return small, tuple(submodules)


def _pointers(folder: Path, small: list[str]) -> tuple[str, ...]:
    pointers = []
    for name in small:
        path = folder / name
        if path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            if file.read(len(_POINTER)) == _POINTER:
                pointers.append(name)
    return tuple(pointers)
