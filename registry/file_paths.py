"""The paths of the files of a version that is being made."""

from __future__ import annotations

from pathlib import PurePosixPath

from registry.errors import RegistryError
from tracking.artifacts import paths
from tracking.mlflow.protocol.errors import MlflowError

MAX_FILES = 10_000


class FilePaths:
    """Takes the paths one after another, and refuses those that cannot be in one version."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._folders: set[str] = set()

    def add(self, path: str) -> str:
        """Returns the path. Raises RegistryError."""
        if len(self._paths) >= MAX_FILES:
            raise RegistryError("files", f"are more than {MAX_FILES}; pack some of them together")
        try:
            paths.check_path(path)
        except MlflowError as error:
            raise RegistryError("files", error.message) from error
        folders = [str(folder) for folder in PurePosixPath(path).parents if folder.name]
        if path in self._paths:
            raise RegistryError("files", f"{path!r} is there twice; rename one")
        # No file system could hold both a file `a` and a file `a/b`.
        if path in self._folders or not self._paths.isdisjoint(folders):
            raise RegistryError(
                "files", f"{path!r} and another need a file and a folder of one name; rename one"
            )
        self._paths.add(path)
        self._folders.update(folders)
        return path
