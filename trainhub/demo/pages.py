"""What only a demo has: a link that signs in once, and a button that removes the demo."""

from __future__ import annotations

import hmac
import os
import signal

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from trainhub import installation
from trainhub.demo import files
from workspaces import audit
from workspaces.access import WorkspaceRequest, needs
from workspaces.bootstrap import OWNER
from workspaces.models import User
from workspaces.states import Role

BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
@require_GET
def sign_in_once(request: HttpRequest, secret: str) -> HttpResponse:
    """Signs in as the owner of the demo, once after each start of it."""
    try:
        expected = files.SIGN_IN_LINK.read_text()
        if not hmac.compare_digest(expected.encode(), secret.encode()):
            return redirect("sign-in")
        # Of two requests at once only one can remove the file.
        files.SIGN_IN_LINK.unlink()
    except FileNotFoundError:
        return redirect("sign-in")
    owner = User.objects.get(username=OWNER)
    login(request, owner, backend=BACKEND)
    audit.record(owner, "person.signed-in-by-link", OWNER)
    return redirect("dashboard")


@require_POST
@needs(Role.OWNER)
def remove(request: WorkspaceRequest) -> HttpResponse:
    """Ends the demo, whose supervisor then removes its folder."""
    files.REMOVE.touch(mode=0o600)
    response = render(request, "demo/removed.html", {"folder": installation.DATA_DIR})
    # The process that started this one is the supervisor. It lets requests finish before it ends the server.
    os.kill(os.getppid(), signal.SIGTERM)
    return response
