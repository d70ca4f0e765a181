"""Pages that make versions: from a run's outputs, and from uploaded files."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from registry.errors import RegistryError
from registry.forms import RegisterForm
from registry.models import RegisteredModel
from registry.registration import register as register_version
from registry.views.models import sentence
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

MAX_NAMES = 500


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Role.CONTRIBUTOR)
def register(request: WorkspaceRequest) -> HttpResponse:
    """GET: shows the form, filled from the query. POST: registers a version, or shows the form again with the
    typed values."""
    workspace = request.principal.workspace
    if request.method != "POST":
        return render(
            request,
            "registry/register.html",
            {"form": RegisterForm(initial=request.GET.dict(), workspace=workspace)},
        )
    form = RegisterForm(request.POST, workspace=workspace)
    # No field is required, so this refuses only text that cannot be stored, such as NUL; `register_version`
    # checks the values.
    if not form.is_valid():
        return render(request, "registry/register.html", {"form": form}, status=422)
    typed = form.cleaned_data
    run = form.chosen_run(workspace)
    if run is None:
        form.add_error("run", "Choose one of the runs of this workspace.")
        return render(request, "registry/register.html", {"form": form}, status=422)
    try:
        version = register_version(
            workspace,
            typed["name"],
            run,
            typed["path"],
            request.principal.user,
            description=typed["description"],
        )
    except RegistryError as error:
        form.add_error(error.field if error.field in form.fields else None, sentence(error))
        return render(request, "registry/register.html", {"form": form}, status=422)
    messages.success(request, f"Registered {version.model.name} version {version.number} from {run}.")
    return redirect("model-version", version.model.name, version.number)


@require_safe
@needs(Role.CONTRIBUTOR)
def upload(request: WorkspaceRequest) -> HttpResponse:
    """Shows the form. The browser sends it to the route in `registry.transfer`, which does not pass through
    Django."""
    names = RegisteredModel.objects.filter(workspace=request.principal.workspace).values_list(
        "name", flat=True
    )[:MAX_NAMES]
    return render(request, "registry/upload.html", {"name": request.GET.get("name", ""), "names": names})
