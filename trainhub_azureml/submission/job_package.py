"""What a run's source gets in addition: a file with this package, so that `azureml.core` can be imported in
the job and nothing has to be installed there."""

from __future__ import annotations

from trainhub_sdk.job import archive

# Python imports from a zip of any name, and files of ignored kinds (*.zip) would not reach the hub.
FILE_NAME = "trainhub_azureml.pyz"


def job_package() -> bytes:
    """Returns the content of the file, always the same for the same version."""
    packages = ("trainhub_azureml", "trainhub_sdk")
    return archive.job_archive(packages, "trainhub_azureml/names/", ("trainhub_azureml/check/",))


def python_path(own: str) -> str:
    """Returns the variable PYTHONPATH of a run whose script sets `own`."""
    return archive.python_path(own, FILE_NAME)
