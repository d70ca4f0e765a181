"""Takes a zip that is sent as the body of a request, as `curl --data-binary` does."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from rest_framework.parsers import BaseParser, DataAndFiles

from workspaces.api.problems import ApiProblem

# Upper limit for what a multipart form adds to the file it carries.
FORM_BYTES = 64 * 1024
PIECE_BYTES = 1024 * 1024


class ZipParser(BaseParser):
    """Makes the body the file `file`, as a form would. Raises ApiProblem (413) for a body that is larger than
    MAX_SNAPSHOT_BYTES."""

    media_type = "application/zip"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> DataAndFiles[Any, Any]:
        # Closed with the request's files, which deletes it.
        body = tempfile.SpooledTemporaryFile(max_size=PIECE_BYTES)  # noqa: SIM115
        while piece := stream.read(PIECE_BYTES):
            body.write(piece)
            if body.tell() > settings.MAX_SNAPSHOT_BYTES:
                body.close()
                raise too_large()
        size = body.tell()
        body.seek(0)
        file = UploadedFile(body, "body.zip", media_type, size)
        return DataAndFiles(QueryDict(), MultiValueDict({"file": [file]}))


class WindowsZipParser(ZipParser):
    """The same for the type that programs on Windows give to a zip."""

    media_type = "application/x-zip-compressed"


def too_large() -> ApiProblem:
    limit = f"{settings.MAX_SNAPSHOT_BYTES / 2**20:.0f} MiB"
    message = f"is larger than the {limit} allowed; leave data out with a .trainhubignore file"
    return ApiProblem(413, f"file: {message}", [("file", message)])
