"""Serves members of the workspace the files of datasets that the hub keeps."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import Response

from datastores.datasets.file_list import find_files
from datastores.models import DatasetVersion
from datastores.states import DatastoreKind
from jobs.transfer.downloads import SAFE_HEADERS
from trainhub_launch.data.manifests import ListedFile, content_sha256
from workspaces.access import Principal
from workspaces.http.auth import require_person
from workspaces.http.problems import Problem, not_found, problem_responses
from workspaces.http.threads import in_thread
from workspaces.stored_files import blobs
from workspaces.stored_files.responses import StoredFileResponse

ADDRESS = "/api/v1/datasets/{name:str}/versions/{number:int}/files/{path:rest}"
MAX_NUMBER = 2**31 - 1


@problem_responses
async def dataset_file(request: Request) -> Response:
    """Serves a file of a version; supports Range."""
    who = await require_person(request)
    listed = await in_thread(_listed_file, who, request.path_params)
    sha256 = content_sha256(listed.etag)
    return StoredFileResponse(
        blobs.path(sha256),
        sha256=sha256,
        filename=PurePosixPath(listed.path).name,
        modified_at=datetime.fromtimestamp(listed.modified_at, UTC),
        headers=SAFE_HEADERS,
    )


def _listed_file(who: Principal, params: dict[str, object]) -> ListedFile:
    """Returns the file, whose content the hub has. Raises Problem."""
    rows = DatasetVersion.objects.filter(dataset__workspace=who.workspace, dataset__name=params["name"])
    number, path = min(int(str(params["number"])), MAX_NUMBER), str(params["path"])
    version = rows.select_related("dataset__datastore", "manifest").filter(number=number).first()
    if version is None or not version.is_ready:
        raise not_found("There is no such version in this workspace, or it has no list of its files.")
    datastore = version.dataset.datastore
    if datastore.kind != DatastoreKind.HUB:
        # Of other stores whoever runs them chooses the ETags, so their lists open nothing here.
        raise Problem(
            HTTPStatus.CONFLICT,
            "Not kept by the hub",
            f"The files of {version} lie in the datastore {datastore}, and the hub does not keep them: read "
            "them in a run, or there with credentials of your own.",
        )
    listed = find_files(version, [path]).get(path)
    if listed is None:
        raise not_found(f"{version} has no such file.")
    sha256 = content_sha256(listed.etag)
    if not blobs.exists(sha256):
        raise not_found(f"The bytes of this file {blobs.absence(sha256)}.")
    return listed
