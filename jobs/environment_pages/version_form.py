"""The form with which people describe a version of an environment."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from environments.requirement_list import MAX_BYTES
from trainhub_launch.errors import SpecError


@dataclass(frozen=True)
class VersionForm:
    """What was typed, and the sentence about the field that is wrong, if one is."""

    name: str = ""
    python: str = ""
    requirements: str = ""
    error_field: str = ""
    error: str = ""

    def with_error(self, error: SpecError) -> VersionForm:
        sentence = f"{error.message[:1].upper()}{error.message[1:]}."
        field = error.field if error.field in ("name", "python", "requirements") else "name"
        return replace(self, error_field=field, error=sentence)


def read_form(request: HttpRequest, name: str) -> VersionForm:
    """Returns the posted form. A chosen file replaces the typed requirements. `name`: that of an existing
    environment, "" if it is typed."""
    form = VersionForm(
        name or request.POST.get("name", ""),
        request.POST.get("python", "").strip(),
        request.POST.get("requirements", "").replace("\r\n", "\n"),
    )
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile) or not file.size:
        return form
    try:
        return replace(form, requirements=_text_of(file))
    except SpecError as error:
        return form.with_error(error)


def _text_of(file: UploadedFile[bytes]) -> str:
    data: bytes = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SpecError(
            "requirements", f"the file must have at most {MAX_BYTES // 1024} KiB; choose a requirements file"
        )
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SpecError(
            "requirements", "the file is not text in UTF-8; choose a requirements file"
        ) from error
