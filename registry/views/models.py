"""The list of models, and the page of one model."""

from __future__ import annotations

import re

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from registry import deletion, model_metadata
from registry.aliases import delete_alias, set_alias
from registry.errors import RegistryError
from registry.lookup import models_of
from registry.models import RegisteredModel
from tracking import notes
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@require_safe
@needs(Role.VIEWER)
def models(request: WorkspaceRequest) -> HttpResponse:
    may_write = request.principal.may(Role.CONTRIBUTOR)
    return render(
        request,
        "registry/models.html",
        {"models": models_of(request.principal.workspace), "may_write": may_write},
    )


@require_safe
@needs(Role.VIEWER)
def model(request: WorkspaceRequest, name: str) -> HttpResponse:
    return _model_page(request, find_model(request, name))


@needs(Role.CONTRIBUTOR)
def alias(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Sets an alias of a version, or deletes it if the form has `remove`."""
    model = find_model(request, name)
    number = request.POST.get("version", "")
    # The forms on a version's page send `back`; those on the model's page do not.
    is_beside = "back" in request.POST and number.isdecimal()
    here = redirect("model-version", name, int(number)) if is_beside else redirect("model", name)
    if request.method != "POST":
        # Somebody reloads or shares the address that a refused form left behind.
        return here
    word, user, is_owner = (
        request.POST.get("alias", ""),
        request.principal.user,
        request.principal.may(Role.OWNER),
    )
    try:
        if "remove" in request.POST:
            delete_alias(model, word, user, is_owner=is_owner)
        else:
            set_alias(model, word, _number(number), user, is_owner=is_owner)
    except RegistryError as error:
        return _model_page(request, model, typed=word, at=number, error=sentence(error), status=422)
    except PermissionDenied as error:
        return _model_page(request, model, typed=word, at=number, error=str(error), status=403)
    return here


@require_POST
@needs(Role.CONTRIBUTOR)
def describe(request: WorkspaceRequest, name: str) -> HttpResponse:
    model = find_model(request, name)
    try:
        model_metadata.describe(model, request.POST.get("description", ""))
    except RegistryError as error:
        messages.error(request, sentence(error))
    return redirect("model", name)


@require_POST
@needs(Role.OWNER)
def protect(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Replaces the list of protected aliases, which are separated by commas or spaces."""
    model = find_model(request, name)
    try:
        model_metadata.protect(
            model, re.split(r"[,\s]+", request.POST.get("protected", "")), request.principal.user
        )
    except RegistryError as error:
        messages.error(request, f"Nothing was changed: {error.message}.")
    return redirect("model", name)


@require_POST
@needs(Role.OWNER)
def delete(request: WorkspaceRequest, name: str) -> HttpResponse:
    deletion.delete_model(find_model(request, name), request.principal.user)
    messages.success(request, f"Deleted {name} with all its versions.")
    return redirect("models")


def find_model(request: WorkspaceRequest, name: str) -> RegisteredModel:
    model = models_of(request.principal.workspace).filter(name=name).first()
    if model is None:
        raise Http404
    return model


def sentence(error: RegistryError) -> str:
    return (
        error.message[:1].upper()
        + error.message[1:]
        + ("" if error.message.endswith((".", "?", "…")) else ".")
    )


def _model_page(
    request: WorkspaceRequest, model: RegisteredModel, status: int = 200, **extra: str
) -> HttpResponse:
    context = {
        "model": model,
        "may_write": request.principal.may(Role.CONTRIBUTOR),
        "may_delete": request.principal.may(Role.OWNER),
        "description": notes.render(model.description),
        **extra,
    }
    return render(request, "registry/model.html", context, status=status)


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise RegistryError("version", "must be the number of a version")
    return int(text)
