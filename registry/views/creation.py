"""Making versions: from a run, and from files of one's own."""

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

MOST_NAMES = 500


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Role.CONTRIBUTOR)
def register(request: WorkspaceRequest) -> HttpResponse:
    """GET: the form, filled from the address. POST: register, or show the form again with all that was
    typed."""
    workspace = request.principal.workspace
    if request.method != "POST":
        return render(
            request,
            "registry/register.html",
            {"form": RegisterForm(initial=request.GET.dict(), workspace=workspace)},
        )
    form = RegisterForm(request.POST, workspace=workspace)
    form.is_valid()
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
    """The form; what it sends goes to the raw route, past Django."""
    names = RegisteredModel.objects.filter(workspace=request.principal.workspace).values_list(
        "name", flat=True
    )[:MOST_NAMES]
    return render(request, "registry/upload.html", {"name": request.GET.get("name", ""), "names": names})
