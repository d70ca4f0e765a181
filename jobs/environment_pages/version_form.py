"""The form with which people describe a version of an environment."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from environments.kinds.all_kinds import KINDS
from environments.requirement_list import MAX_BYTES
from environments.states import EnvironmentKind
from trainhub_launch.errors import SpecError


@dataclass(frozen=True)
class VersionForm:
    """What was typed, and the sentence about the field that is wrong, if one is. `kind`: the name of the kind
    of environment that the form describes."""

    name: str = ""
    kind: str = EnvironmentKind.PIP
    python: str = ""
    source: str = ""
    error_field: str = ""
    error: str = ""

    def with_error(self, error: SpecError) -> VersionForm:
        sentence = f"{error.message[:1].upper()}{error.message[1:]}."
        is_known = error.field in ("name", "python")
        field = error.field if is_known else "source" if error.field == KINDS[self.kind].field else "name"
        return replace(self, error_field=field, error=sentence)


def read_form(request: HttpRequest, name: str, kind: str) -> VersionForm:
    """Returns the posted form. A chosen file replaces the typed source. `name`: that of an existing
    environment, "" if it is typed; `kind`: the name of a known kind."""
    form = VersionForm(
        name or request.POST.get("name", ""),
        kind,
        request.POST.get("python", "").strip() if KINDS[kind].has_python else "",
        request.POST.get("source", "").replace("\r\n", "\n"),
    )
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile) or not file.size:
        return form
    try:
        return replace(form, source=_text_of(file, KINDS[kind].field))
    except SpecError as error:
        return form.with_error(error)


def _text_of(file: UploadedFile[bytes], field: str) -> str:
    data: bytes = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SpecError(field, f"the file must have at most {MAX_BYTES // 1024} KiB; choose a smaller one")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SpecError(field, "the file is not text in UTF-8; choose a file that is") from error
