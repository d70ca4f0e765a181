"""S18: every answer of the hub, whichever part makes it, tells browsers what they must not do with it."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
import pytest

from tests.hub import Hub
from tests.pages.logs.training_log import begin
from tests.runs import submit, wait_for
from tests.signing_in import page_client

pytestmark = pytest.mark.slow
MARKDOWN, FIGURE, PICTURE = "a.md", "figure.json", "box.svg"
FILES = {
    MARKDOWN: "# Title\n<script>alert(1)</script>",
    FIGURE: '{"data": [{"y": [1, 2]}], "layout": {}}',
    PICTURE: '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
    "page.html": "<script>alert(1)</script>",
}


@dataclass(frozen=True)
class Known:
    """What the hub holds, for the addresses below."""

    job: str
    number: int
    run: str
    experiment: str


@pytest.fixture(scope="module")
def known(hub: Hub) -> Known:
    job = submit(hub, "print('hello')")
    assert wait_for(hub, job)["state"] == "Completed"
    logged = begin(hub, "headers")
    told = logged.client.get("/api/2.0/mlflow/runs/get", params={"run_id": logged.id}).json()
    experiment = str(told["run"]["info"]["experiment_id"])
    for path, content in FILES.items():
        url = f"/api/2.0/mlflow-artifacts/artifacts/{experiment}/{logged.id}/artifacts/{path}"
        logged.client.put(url, content=content.encode()).raise_for_status()
    logged.end()
    return Known(job, logged.number, logged.id, experiment)


@pytest.fixture(scope="module")
def as_person(hub: Hub) -> httpx.Client:
    return page_client(hub)


PAGES = [
    "/",
    "/runs/",
    "/runs/new/",
    "/runs/new/import/",
    "/runs/{number}/",
    "/runs/{number}/outputs/",
    "/runs/{number}/outputs/?file=a.md",
    "/experiments/",
    "/clusters/",
    "/clusters/add/",
    "/models/",
    "/environments/",
    "/environments/TrainHub-PyTorch-2.13/",
    "/environments/new/",
    "/settings/",
    "/settings/notifications/",
    "/settings/password/",
    "/settings/profile/",
    "/settings/factors/",
    "/settings/invitations/",
    "/sign-in/second-step/",
    "/alerts/",
    "/alerts/thresholds/",
    "/usage/",
    "/compare/",
    "/api/",
    "/docs/",
    "/docs/history/",
    "/sdk/",
    "/search/?q=a",
    "/none/",
    "/runs/999999/",
]
FILE_ANSWERS = [
    "/api/v1/runs/{job}/logs/70_driver_log.txt",
    "/api/v1/runs/{job}/logs/70_driver_log.txt?download=1",
    "/api/v1/artifacts/files/{experiment}/{run}/artifacts/page.html",
    "/api/v1/artifacts/images/{experiment}/{run}/artifacts/box.svg",
    "/api/v1/artifacts/previews/{experiment}/{run}/artifacts/a.md",
    "/api/v1/artifacts/zip/{experiment}/{run}/artifacts",
    "/api/2.0/mlflow-artifacts/artifacts/{experiment}/{run}/artifacts/page.html",
]
DATA = [
    *FILE_ANSWERS,
    "/api/v1/runs/",
    "/api/v1/schema/",
    "/api/v1/none/",
    "/api/v1/runs/none/",
    "/api/v1/node/config/",
    "/healthz",
    "/health",
    "/version",
    "/metrics",
    "/api/2.0/mlflow/experiments/get?experiment_id={experiment}",
    "/api/2.0/mlflow/runs/get?run_id=none",
    "/ajax-api/2.0/mlflow/experiments/get?experiment_id={experiment}",
    "/api/2.0/mlflow-artifacts/artifacts?path=none",
    "/api/v1/node/ca/",
    "/api/v1/node/wheel/none.whl",
    "/sdk/ca.pem",
    "/sdk/none.whl",
    "/api/v1/usage/",
    "/api/v1/runs/{job}/logs/none.txt",
    "/api/v1/artifacts/files/none/none",
    "/api/v1/snapshots/none",
]
STATIC = [
    "/static/css/base.css",
    "/static/js/frame.js",
    "/static/icon.svg",
    "/static/none.css",
    "/static/vendor/plotly-strict-4.1.1.min.js",
]
WRITES = [
    "/api/v1/runs/",
    "/api/2.0/mlflow/runs/log-batch",
    "/api/2.0/mlflow/runs/create",
    "/api/v1/node/report/",
    "/api/v1/node/enrol/",
    "/sign-in/",
    "/healthz",
    "/static/css/base.css",
    "/none/",
    "/api/v1/uploads/none",
]


def policy_of(answer: httpx.Response) -> dict[str, str]:
    found = (part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";"))
    return {name: value for name, _, value in found}


@pytest.mark.parametrize("address", PAGES)
def test_a_page_runs_only_scripts_and_styles_of_the_hub(
    address: str, as_person: httpx.Client, known: Known
) -> None:
    answer = as_person.get(address.format(**vars(known)))
    assert answer.headers["content-type"].startswith("text/html"), f"{address}: {answer.status_code}"
    policy = policy_of(answer)
    assert policy == {
        "default-src": "'self'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "connect-src": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "object-src": "'none'",
    }
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in answer.headers["permissions-policy"]
    assert answer.headers["cache-control"] in ("private, no-cache", "no-store", "no-store, no-transform")
    assert "strict-transport-security" not in answer.headers, "plain HTTP"


@pytest.mark.parametrize("address", DATA)
def test_an_answer_to_programs_is_never_taken_for_a_page(address: str, hub: Hub, known: Known) -> None:
    with hub.client() as client:
        answer = client.get(address.format(**vars(known)))
    is_page = answer.headers.get("content-type", "").startswith("text/html")
    # MLflow's clients are told the type that its own server gives; a browser is told to store the file, not
    # to show it.
    is_stored = answer.headers.get("content-disposition", "").startswith("attachment")
    assert not is_page or is_stored, f"{address}: {answer.status_code}"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert policy_of(answer)["default-src"] == "'none'"
    assert answer.headers["cache-control"] in ("private, no-cache", "no-store", "no-store, no-transform")
    varies = {word.strip() for word in answer.headers["vary"].split(",")}
    assert {"Cookie", "Authorization", "Accept-Encoding"} <= varies


@pytest.mark.parametrize("address", FILE_ANSWERS)
def test_a_file_of_a_run_keeps_its_stricter_policy(address: str, hub: Hub, known: Known) -> None:
    with hub.client() as client:
        answer = client.get(address.format(**vars(known)))
    assert answer.status_code == httpx.codes.OK, f"{address}: {answer.text[:200]}"
    assert "sandbox" in policy_of(answer)


def test_a_figure_stands_in_a_frame_of_this_hub_and_reaches_nothing(
    as_person: httpx.Client, known: Known
) -> None:
    answer = as_person.get(f"/api/v1/artifacts/figures/{known.experiment}/{known.run}/artifacts/{FIGURE}")
    policy = policy_of(answer)
    assert policy["sandbox"] == "allow-scripts"
    assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'", "'self'")
    assert "unsafe-eval" not in policy["script-src"]
    assert "connect-src" not in policy


def test_a_page_of_a_run_stands_in_a_frame_without_origin_and_reaches_nothing(
    as_person: httpx.Client, known: Known
) -> None:
    root = f"/api/v1/artifacts/pages/{known.experiment}/{known.run}/artifacts"
    policy = policy_of(as_person.get(f"{root}/page.html"))
    assert policy["sandbox"] == "allow-scripts"
    assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'", "'self'")
    assert (policy["form-action"], policy["base-uri"]) == ("'none'", "'none'")
    assert "'self'" not in policy["script-src"].split()
    assert "unsafe-eval" not in policy["script-src"]
    assert "connect-src" not in policy
    alone = as_person.get(f"{root}/page.html", headers={"Sec-Fetch-Dest": "document"})
    assert alone.status_code == httpx.codes.BAD_REQUEST
    # What is no HTML is not made into a page.
    assert as_person.get(f"{root}/{MARKDOWN}").status_code == httpx.codes.BAD_REQUEST


@pytest.mark.parametrize("address", STATIC)
def test_a_static_file_keeps_its_type(address: str, as_person: httpx.Client) -> None:
    answer = as_person.get(address)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "Cookie" not in answer.headers.get("vary", ""), "the same for everybody"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("address", WRITES)
def test_an_answer_to_a_write_keeps_its_type(address: str, method: str, hub: Hub, known: Known) -> None:
    with hub.client() as client:
        answer = client.request(method, address, content=b"{}", headers={"Content-Type": "application/json"})
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_answer_without_body_has_the_headers_too(hub: Hub, as_person: httpx.Client) -> None:
    first = as_person.get("/static/js/frame.js")
    again = as_person.get("/static/js/frame.js", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == httpx.codes.NOT_MODIFIED
    stranger = httpx.get(f"{hub.url}/runs/")
    assert stranger.status_code == httpx.codes.FOUND
    for answer in (again, stranger, as_person.head("/runs/")):
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_part_of_a_file_has_the_headers_too(hub: Hub, known: Known) -> None:
    with hub.client() as client:
        address = f"/api/v1/artifacts/files/{known.experiment}/{known.run}/artifacts/page.html"
        answer = client.get(address, headers={"Range": "bytes=0-3"})
    assert answer.status_code == httpx.codes.PARTIAL_CONTENT
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in policy_of(answer)
