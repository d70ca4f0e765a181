"""The form with which people describe a version of an environment."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from environments.dockerfiles.source import join_dockerfile, split_dockerfile
from environments.dockerfiles.written import FIELDS as PACKAGE_FIELDS
from environments.dockerfiles.written import write_dockerfile
from environments.images.source import SECRET_FIELD, ImageSource, split_source
from environments.kinds.all_kinds import KINDS
from environments.kinds.registry_secrets import registry_secret_of
from environments.projects.source_text import MAX_BYTES, join_files
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
    base_image: str = ""
    pip_packages: str = ""
    debian_packages: str = ""

    @property
    def image(self) -> str:
        return split_source(self.source).image

    @property
    def text(self) -> str:
        """Returns what the field for the source shows."""
        is_dockerfile = self.kind == EnvironmentKind.DOCKERFILE
        return split_dockerfile(self.source).dockerfile if is_dockerfile else self.source

    @property
    def registry_secret(self) -> str:
        return registry_secret_of(self.kind, self.source)

    def with_error(self, error: SpecError) -> VersionForm:
        sentence = f"{error.message[:1].upper()}{error.message[1:]}."
        is_known = error.field in ("name", "python", SECRET_FIELD, *PACKAGE_FIELDS)
        return replace(self, error_field=error.field if is_known else "source", error=sentence)


def read_form(request: HttpRequest, name: str, kind: str) -> VersionForm:
    """Returns the posted form. Chosen files replace the typed source. `name`: that of an existing
    environment, "" if it is typed; `kind`: the name of a known kind."""
    form = VersionForm(
        name or request.POST.get("name", ""),
        kind,
        request.POST.get("python", "").strip() if KINDS[kind].has_python else "",
        _typed_source(request, kind),
    )
    files = [item for item in request.FILES.getlist("file") if isinstance(item, UploadedFile) and item.size]
    if not files:
        return form
    try:
        texts = [_text_of(file, KINDS[kind].field) for file in files]
        return replace(form, source=_with_login(kind, join_files(texts), form.registry_secret))
    except SpecError as error:
        return form.with_error(error)


def fill_dockerfile(request: HttpRequest, form: VersionForm) -> VersionForm:
    """Returns the form with the Dockerfile that the posted base image and packages make, for the person to
    see and edit."""
    typed = {name: request.POST.get(name, "").replace("\r\n", "\n") for name in PACKAGE_FIELDS}
    form = replace(form, error="", error_field="", **typed)
    try:
        text = write_dockerfile(
            form.base_image, form.pip_packages.splitlines(), form.debian_packages.splitlines()
        )
    except SpecError as error:
        return form.with_error(error)
    return replace(form, source=join_dockerfile(text, form.registry_secret))


def _typed_source(request: HttpRequest, kind: str) -> str:
    text = request.POST.get("source", "").replace("\r\n", "\n")
    return _with_login(kind, text, request.POST.get(SECRET_FIELD, "").strip())


def _with_login(kind: str, text: str, secret: str) -> str:
    """Returns the source for the text and the name of the secret with the registry's login, or ""."""
    if kind == EnvironmentKind.DOCKERFILE:
        return join_dockerfile(text, secret)
    return ImageSource(text.strip(), secret).text if kind == EnvironmentKind.IMAGE else text


def _text_of(file: UploadedFile[bytes], field: str) -> str:
    data: bytes = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SpecError(field, f"the file must have at most {MAX_BYTES // 1024} KiB; choose a smaller one")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SpecError(field, "the file is not text in UTF-8; choose a file that is") from error
