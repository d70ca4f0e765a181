from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from registry.aliases import delete_alias, set_alias
from registry.errors import RegistryError
from registry.forms import RegisterForm
from registry.lookup import models_of
from registry.models import RegisteredModel
from registry.registering import register as register_version
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@require_safe
@needs(Role.VIEWER)
def models(request: WorkspaceRequest) -> HttpResponse:
    may_write = request.principal.may(Role.CONTRIBUTOR)
    return render(request, "registry/models.html", {"models": models_of(request.principal.workspace), "may_write": may_write})


@require_safe
@needs(Role.VIEWER)
def model(request: WorkspaceRequest, name: str) -> HttpResponse:
    return _model_page(request, _model(request, name))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Role.CONTRIBUTOR)
def register(request: WorkspaceRequest) -> HttpResponse:
    """GET: the form, filled from the address. POST: register, or show the form again with all that was typed."""
    workspace = request.principal.workspace
    if request.method != "POST":
        return render(request, "registry/register.html", {"form": RegisterForm(initial=request.GET.dict(), workspace=workspace)})
    form = RegisterForm(request.POST, workspace=workspace)
    form.is_valid()
    typed = form.cleaned_data
    run = form.chosen_run(workspace)
    if run is None:
        form.add_error("run", "Choose one of the runs of this workspace.")
        return render(request, "registry/register.html", {"form": form}, status=422)
    try:
        version = register_version(
            workspace, typed["name"], run, typed["path"], request.principal.user, description=typed["description"]
        )
    except RegistryError as error:
        form.add_error(error.field if error.field in form.fields else None, _sentence(error))
        return render(request, "registry/register.html", {"form": form}, status=422)
    messages.success(request, f"Registered {version.model.name} version {version.number} from {run}.")
    return redirect("model", version.model.name)


@needs(Role.CONTRIBUTOR)
def alias(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Give an alias to a version, or with `remove` take it away."""
    found = _model(request, name)
    if request.method != "POST":
        # Somebody reloads or shares the address that a refused form left behind.
        return redirect("model", name)
    word = request.POST.get("alias", "")
    try:
        if "remove" in request.POST:
            delete_alias(found, word, request.principal.user)
        else:
            set_alias(found, word, _number(request.POST.get("version", "")), request.principal.user)
    except RegistryError as error:
        return _model_page(request, found, typed=word, at=request.POST.get("version", ""), error=_sentence(error), status=422)
    return redirect("model", name)


def _model(request: WorkspaceRequest, name: str) -> RegisteredModel:
    found = models_of(request.principal.workspace).filter(name=name).first()
    if found is None:
        raise Http404
    return found


def _model_page(request: WorkspaceRequest, found: RegisteredModel, status: int = 200, **extra: str) -> HttpResponse:
    may_write = request.principal.may(Role.CONTRIBUTOR)
    return render(request, "registry/model.html", {"model": found, "may_write": may_write, **extra}, status=status)


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise RegistryError("version", "must be the number of a version")
    return int(text)


def _sentence(error: RegistryError) -> str:
    return error.message[:1].upper() + error.message[1:] + ("" if error.message.endswith((".", "?", "…")) else ".")
