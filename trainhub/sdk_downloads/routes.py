"""Routes below /sdk/, in front of Django. Nobody has to sign in: a machine that has nothing of TrainHub yet
has no token either."""

from __future__ import annotations

from django.template.loader import render_to_string
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from trainhub.sdk_downloads.install_lines import authority_pem
from trainhub.sdk_downloads.settings_section import install_context
from trainhub.sdk_downloads.wheels import wheel_listing
from workspaces.http.problems import not_found, problem_responses
from workspaces.http.threads import in_thread
from workspaces.stored_files.responses import StoredFileResponse


async def packages_page(_: Request) -> Response:
    """Returns the page that lists all wheels, for people and for pip's option --find-links."""
    return HTMLResponse(await in_thread(_render_index))


async def without_slash(_: Request) -> Response:
    return RedirectResponse("/sdk/", status_code=308)


@problem_responses
async def authority_file(_: Request) -> Response:
    """Returns the certificate of the hub's own authority in PEM."""
    # Public on purpose: whoever does not trust this hub yet cannot send credentials. The line that people
    # copy compares its hash.
    pem = await in_thread(authority_pem)
    if not pem:
        raise not_found("This hub has no authority of its own: trust its certificate as any other.")
    return Response(pem, media_type="application/x-pem-file")


@problem_responses
async def wheel_file(request: Request) -> Response:
    listing = await in_thread(wheel_listing)
    # The name is compared with those in the list, and never joined to a path.
    served = listing.wheels.get(request.path_params["name"])
    if served is None:
        raise not_found("This hub has no such package; the page /sdk/ lists all that it has.")
    return StoredFileResponse(served.path, etag=f'"{served.sha256}"', filename=served.name)


def _render_index() -> str:
    listing = wheel_listing()
    wheels = sorted(listing.wheels.values(), key=lambda served: served.name)
    context = {**install_context(), "wheels": wheels, "is_built": listing.is_built}
    return render_to_string("sdk_downloads/index.html", {"section": context})


routes = [
    Route("/sdk", without_slash),
    Route("/sdk/", packages_page),
    Route("/sdk/ca.pem", authority_file),
    Route("/sdk/{name}", wheel_file),
]
