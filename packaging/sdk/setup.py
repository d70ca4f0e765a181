"""Adds what pyproject.toml cannot name: a file beside the packages."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# Python appends the folder in such a file to its path, behind all packages that are installed: the names of
# the Azure ML SDK v1 are ours only where nothing else has them.
PATH_FILE, FOLDER = "trainhub_azureml.pth", "trainhub_azureml/names"


class BuildWithPath(build_py):  # type: ignore[misc]  # setuptools has no types
    def run(self) -> None:
        super().run()
        Path(self.build_lib, PATH_FILE).write_text(f"{FOLDER}\n")


setup(cmdclass={"build_py": BuildWithPath})
