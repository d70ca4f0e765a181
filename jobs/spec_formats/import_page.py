"""The page on which a file of another launcher becomes a draft of the wizard."""

from __future__ import annotations

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from jobs.exports import FORMATS
from jobs.imports import READERS, import_spec
from jobs.imports.yaml_document import FIELD, MAX_TEXT_BYTES
from jobs.wizard import drafts
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

LABELS = {name: FORMATS[name].label for name in READERS}


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Role.CONTRIBUTOR)
def import_file(request: WorkspaceRequest) -> HttpResponse:
    """Shows the form; after a post what became of each line, with the draft that was made."""
    source = request.POST.get("source", "sbatch")
    context: dict[str, object] = {"formats": LABELS, "source": source, "text": request.POST.get("text", "")}
    if request.method != "POST":
        return render(request, "jobs/wizard/import.html", context)
    try:
        result = import_spec(source, _posted_text(request))
        draft = drafts.start(request.principal, result.spec)
    except SpecError as error:
        context["problem"] = f"{error.field}: {error.message}"
        return render(request, "jobs/wizard/import.html", context, status=422)
    return render(request, "jobs/wizard/import.html", context | {"notes": result.notes, "draft": draft})


def _posted_text(request: HttpRequest) -> str:
    """Returns the chosen file, or what was pasted. Raises SpecError for a file that is no text."""
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile) or file.file is None:
        # A form sends line ends as those of Windows.
        return request.POST.get("text", "").replace("\r\n", "\n")
    try:
        # One byte more than permitted shows that there is more.
        content: bytes = file.file.read(MAX_TEXT_BYTES + 1)
        return content.decode()
    except UnicodeDecodeError as error:
        raise SpecError(FIELD, "the file is not text in UTF-8; choose another one") from error
