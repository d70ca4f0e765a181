"""Every address that serves files: access is decided before any 304, 412 or 206, and answers are for their
reader alone."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
import pytest
from asgiref.sync import sync_to_async

from jobs.logs import log_store
from registry.registration import register
from tests.jobs.builders import snapshot
from tests.people import make_contributor, make_person, make_viewer, make_workspace, principal_of, token_of
from tests.registry.builders import add_output, run_with
from trainhub.asgi import application
from workspaces import process_caches
from workspaces.models import Membership
from workspaces.states import Role
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = b"<script>alert(document.domain)</script>"
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"


@dataclass(frozen=True)
class Files:
    """The addresses of one file of each kind, and the tokens of who may and who may not read them."""

    addresses: dict[str, str]
    viewer: str
    other: str


@sync_to_async
def prepared() -> Files:
    process_caches.clear_all()
    run = run_with("saved/a.pt")
    add_output(run, "saved/page.html", content=PAGE)
    add_output(run, "saved/chart.svg", content=b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    register(run.workspace, "digits", run, "saved", make_contributor())
    log_store.append(run.pk, 1, "70_driver_log.txt", 0, b"a line\n")
    frozen = snapshot(principal_of(make_contributor()))
    root = f"{run.experiment_id}/{run.pk}/artifacts"
    other = make_person("otto", Role.CONTRIBUTOR, make_workspace("other"))
    return Files(
        {
            "output": f"/api/v1/runs/{run.pk}/outputs/saved/page.html",
            "log": f"/api/v1/runs/{run.pk}/logs/70_driver_log.txt?download=1",
            "snapshot": f"/api/v1/snapshots/{frozen.sha256}",
            "artifact": f"{ARTIFACTS}/{root}/saved/page.html",
            "artifact of a run": f"/get-artifact?run_uuid={run.pk}&path=saved/page.html",
            "file": f"/api/v1/artifacts/files/{root}/saved/page.html",
            "image": f"/api/v1/artifacts/images/{root}/saved/chart.svg",
            "folder": f"/api/v1/artifacts/zip/{root}/saved",
            "model's file": "/api/v1/models/digits/versions/1/files/page.html",
            "model": "/api/v1/models/digits/versions/1/zip",
            "model's file by MLflow": f"{ARTIFACTS}/models/digits/1/page.html",
        },
        token_of(make_viewer()),
        token_of(other, make_workspace("other")),
    )


KINDS = [
    "output",
    "log",
    "snapshot",
    "artifact",
    "artifact of a run",
    "file",
    "image",
    "folder",
    "model's file",
    "model",
    "model's file by MLflow",
]


async def ask(address: str, token: str, method: str = "GET", **headers: str) -> httpx.Response:
    told = {
        "Authorization": f"Bearer {token}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(application), base_url="http://testserver"
    ) as client:
        return await client.request(method, address, headers=told)


@pytest.mark.parametrize("kind", KINDS)
async def test_who_has_lost_access_gets_no_304_412_or_206(kind: str) -> None:
    files = await prepared()
    address = files.addresses[kind]
    before = await ask(address, files.viewer)
    again = await ask(address, files.viewer, If_None_Match=before.headers["etag"])
    assert (before.status_code, again.status_code) == (200, 304)
    await sync_to_async(lambda: Membership.objects.filter(user__username="vera").delete())()
    process_caches.clear_all()  # a token is remembered for three seconds
    for token in (files.viewer, files.other):
        for conditions in (
            {"If-None-Match": before.headers["etag"]},
            {"If-None-Match": "*"},
            {"If-Match": '"x"'},
            {"Range": "bytes=0-0"},
            {"If-Modified-Since": "Tue, 01 Jan 2036 00:00:00 GMT"},
            {"Range": "bytes=99999999-"},
        ):
            for method in ("GET", "HEAD"):
                answer = await ask(address, token, method, **conditions)
                assert answer.status_code == (401 if token == files.viewer else 404), (conditions, method)
                assert "etag" not in answer.headers


@pytest.mark.parametrize("kind", KINDS)
async def test_answers_conditions_and_ranges_and_is_stored_by_nobody_else(kind: str) -> None:
    files = await prepared()
    address, viewer = files.addresses[kind], files.viewer
    whole = await ask(address, viewer)
    tag = whole.headers["etag"]
    assert (tag.startswith('"'), whole.headers["accept-ranges"]) == (True, "bytes")
    part = await ask(address, viewer, Range="bytes=1-3", If_Range=tag)
    assert (part.status_code, part.content) == (206, whole.content[1:4])
    statuses = [
        (await ask(address, viewer, **headers)).status_code
        for headers in (
            {"If-Match": tag},
            {"If-Match": '"x"'},
            {"Range": "lines=1-3"},
            {"Range": "bytes=x-"},
            {"Range": "bytes=99999999-"},
            {"Range": "bytes=1-3", "If-Range": '"x"'},
            {"If-None-Match": '"x"'},
        )
    ]
    assert statuses == [200, 412, 200, 200, 416, 200, 200]
    for answer in (
        whole,
        part,
        await ask(address, viewer, If_None_Match=tag),
        await ask(address, viewer, If_Match='"x"'),
    ):
        assert answer.headers["cache-control"] == "private, no-cache"
        assert answer.headers["vary"] == "Cookie, Authorization, Accept-Encoding"


@pytest.mark.parametrize("kind", KINDS)
async def test_no_browser_takes_it_for_a_page_of_the_hub(kind: str) -> None:
    files = await prepared()
    headers = (await ask(files.addresses[kind], files.viewer)).headers
    assert headers["content-disposition"].startswith("attachment")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("sandbox")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("page.html", "text/html"),
        ("MLmodel", "text/plain"),
        ("a.json", "text/plain"),
        ("a.js", "text/plain"),
        ("a.png", "image/png"),
        ("a.pt", "application/octet-stream"),
        ("a.svg", "image/svg+xml"),
        ("a.csv", "text/plain"),
        ("nothing", "application/octet-stream"),
        ("a.pdf", "application/pdf"),
    ],
)
async def test_content_types_are_those_of_mlflows_server(name: str, kind: str) -> None:
    files = await prepared()
    root = files.addresses["artifact"].removesuffix("/saved/page.html")

    def add() -> str:
        run = run_with("x", number=42)
        add_output(run, name)
        return run.pk

    run_id = await sync_to_async(add)()
    experiment = root.removeprefix(f"{ARTIFACTS}/").partition("/")[0]
    answer = await ask(f"{ARTIFACTS}/{experiment}/{run_id}/artifacts/{name}", files.viewer)
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)


@pytest.mark.parametrize("kind", ["model's file", "model", "model's file by MLflow"])
async def test_a_model_whose_stored_bytes_are_damaged_is_not_handed_out(kind: str) -> None:
    """Finding S3, remedy 4: a wrong file never leaves in silence."""
    files = await prepared()
    address = files.addresses[kind]
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(application), base_url="http://testserver"
    ) as client:
        assert (
            await client.get(address, headers={"Authorization": f"Bearer {files.viewer}"})
        ).status_code == 200
    for file in (blobs.root()).glob("??/*"):
        if file.read_bytes() == PAGE:
            file.chmod(0o600)
            file.write_bytes(PAGE.replace(b"alert", b"EVIL!"))
            file.chmod(0o400)
    try:
        answer = await ask(address, files.viewer)
    except blobs.DamagedBlob:
        pass  # the answer had begun: the web server ends the connection
    else:
        assert (answer.status_code, "damaged" in answer.json()["detail"]) == (500, True)
    later = await ask(address, files.viewer)
    assert (later.status_code, "were damaged" in later.text) == (404, True)


@pytest.mark.parametrize(
    ("address", "methods"),
    [
        ("/api/v1/uploads/" + "0" * 64, "HEAD, OPTIONS, PUT"),
        (f"{ARTIFACTS}/1/x", "DELETE, GET, HEAD, OPTIONS, PUT"),
        (f"{ARTIFACTS}/models/a/1/x", "DELETE, GET, HEAD, OPTIONS, PUT"),
        (f"/api/v1/snapshots/{'0' * 64}", "GET, HEAD, OPTIONS"),
        ("/api/v1/node/report/", "OPTIONS, POST"),
        ("/get-artifact", "GET, HEAD, OPTIONS"),
        ("/api/v1/models/a/versions/upload", "OPTIONS, POST"),
        ("/api/v1/models/a/versions/1/zip", "GET, HEAD, OPTIONS"),
    ],
)
async def test_options_and_405_name_every_method_of_an_address(address: str, methods: str) -> None:
    files = await prepared()
    options = await ask(address, files.viewer, "OPTIONS")
    assert (options.status_code, options.headers["allow"]) == (204, methods)
    wrong = await ask(address, files.viewer, "PATCH")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, methods)
