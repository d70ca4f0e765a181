"""Versions that a node must make: orders, uploads with the ticket of a build, and what becomes of them."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from clusters.models import Node, Quota
from environments import changes, resolver
from environments.models import EnvironmentVersion, ImageBlob
from jobs.builds import build_lifecycle, build_requests
from jobs.builds.build_targets import find_build_target
from jobs.builds.states import BuildState
from jobs.image_registry.tickets import registry_of_build
from jobs.models import BuildFile, EnvironmentBuild, Run
from jobs.node_orders import order_lifecycle, tickets
from jobs.scheduling.run_preview import preview
from jobs.states import RunState
from jobs.version_builds import progress
from tests.environments.images.container_images import MadeImage, make_image
from tests.jobs.builders import Played, node, queued, spec
from tests.jobs.raw import opened
from tests.people import client_of, make_contributor, make_owner, principal_of
from trainhub_launch.machine import BUILDS, CONTAINERS, IMAGE_BUILDS
from workspaces.access import Principal
from workspaces.models import AuditEvent
from workspaces.secrets import store
from workspaces.stored_files import blob_names, blobs

# The routes work in threads of their own, which only see what is committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
IMAGE = make_image({"data": b"x" * 1000})
DOCKERFILE = "FROM python:3.11\nRUN true\n"
SHA256 = hashlib.sha256(b"bytes").hexdigest()
PAGE = "/environments/boxed/versions/1/"


@pytest.fixture
def who(db: None) -> Principal:
    return principal_of(make_contributor())


@pytest.fixture(autouse=True)
def patient(settings: Any) -> None:
    # A test may take longer than a node may be silent.
    settings.NODE_UNREACHABLE_AFTER = settings.NODE_LOST_AFTER = 3600


def building(who: Principal) -> EnvironmentVersion:
    version = changes.create_version(who, "boxed", "dockerfile", DOCKERFILE)
    resolver.resolve(version.pk)
    progress.continue_version(version.pk)
    version.refresh_from_db()
    return version


def able(name: str) -> Played:
    played = Played(node(name, gpus=1))
    Node.objects.filter(name=name).update(capabilities=f"{BUILDS} {CONTAINERS} {IMAGE_BUILDS}")
    played.node.refresh_from_db()
    return played


def claimed(played: Played) -> tuple[EnvironmentBuild, dict[str, Any]]:
    """The build that the node was ordered, and what its order says of it."""
    build_lifecycle.offer_next(played.node.pk)
    build = EnvironmentBuild.objects.get(node=played.node, ended_at=None)
    return build, dict(played.claim(build).make)


def sent(make: dict[str, Any], method: str, path: str, content: bytes = b"", ticket: str = "") -> Any:
    address = f"{make['upload'].partition('//')[2].partition('/')[2]}/{path}"

    @async_to_sync
    async def ask() -> Any:
        async with opened() as client:
            headers = {"Authorization": f"Bearer {ticket or make['ticket']}"}
            return await client.request(method, f"/{address}", content=content, headers=headers)

    return ask()


def uploaded(make: dict[str, Any], image: MadeImage) -> Any:
    """The answer to the result, after all parts of the image."""
    for data in (*image.blobs.values(), image.manifest):
        sha256 = hashlib.sha256(data).hexdigest()
        if sent(make, "HEAD", f"files/{sha256}").status_code == 404:
            assert sent(make, "PUT", f"files/{sha256}", data).status_code == 201
    return sent(make, "POST", "result/", json.dumps({"digest": image.digest}).encode())


def state_of(version: EnvironmentVersion) -> tuple[str, str]:
    version.refresh_from_db()
    return version.state, version.failure


def test_a_version_waits_for_a_node_is_made_there_and_locked(who: Principal, settings: Any) -> None:
    for name in ("beta", "delta"):
        Played(node(name))
    version = building(who)
    assert version.state == "building"
    page = client_of(who.user).get(PAGE).content.decode()
    assert "It waits for a node that can build it: beta cannot build images from Dockerfiles" in page
    assert "upgrade it (the same holds for delta). It is built as soon as there is one." in page
    alpha = able("alpha")
    progress.advance_waiting()
    build, make = claimed(alpha)
    assert (make["kind"], make["dockerfile"]) == ("dockerfile", DOCKERFILE)
    assert make["ticket"] == tickets.upload_ticket(build.pk)
    assert (registry_of_build(build, "http://hub:8000"), build.order_number) == (None, 1)
    answer = uploaded(make, IMAGE)
    assert answer.status_code == 200, answer.text
    assert state_of(version) == ("locked", "")
    # A node that got no answer, because the hub was restarted, sends the result again.
    assert sent(make, "POST", "result/", b"{}").status_code == 200
    assert ImageBlob.objects.filter(version=version).count() == 1 + len(IMAGE.blobs)
    # The ticket opens nothing any more.
    order_lifecycle.finish(build, BuildState.BUILT, "", timezone.now(), is_over=True)
    progress.continue_version(version.pk)
    assert not BuildFile.objects.exists()
    assert sent(make, "PUT", f"files/{'0' * 64}", b"x").status_code == 403
    assert IMAGE.digest in client_of(who.user).get(PAGE).content.decode()
    # Its lock says nothing of CUDA, and it is on the hub only.
    settings.IMAGE_REGISTRY = "registry.example.org"
    target = find_build_target(who.workspace, "boxed", "1")
    assert target is not None
    (install,) = build_requests.request_builds(who, target, ["alpha"])
    assert registry_of_build(install, "http://hub:8000") is not None
    run = spec(who, environment={"name": "boxed"}, resources={"gpus_per_node": 1})
    findings = " ".join(finding.message for finding in preview(run, who).findings)
    assert "the image boxed:1 seems to be for CPUs only" in findings


def test_only_the_bytes_that_are_named_are_taken_with_the_ticket_of_the_build(
    who: Principal, settings: Any
) -> None:
    alpha = able("alpha")
    version = building(who)
    _, make = claimed(alpha)
    assert sent(make, "PUT", f"files/{SHA256}", b"bytes", ticket="thu_wrong").status_code == 401
    assert sent(make, "PUT", f"files/{SHA256}", b"other").status_code == 422
    assert sent(make, "PUT", "files/xyz", b"other").status_code == 400
    settings.MAX_ENVIRONMENT_BUILD_BYTES = 4
    answer = sent(make, "PUT", f"files/{SHA256}", b"bytes")
    assert (answer.status_code, "MAX_ENVIRONMENT_BUILD_BYTES" in answer.text) == (413, True)
    settings.MAX_ENVIRONMENT_BUILD_BYTES = 100_000
    assert not blobs.exists(SHA256)
    assert not BuildFile.objects.exists()
    # Nothing that another workspace has stored, and nothing that was not uploaded, becomes a part of it.
    digest = {"digest": IMAGE.digest}
    missing = sent(make, "POST", "result/", json.dumps(digest).encode())
    assert (missing.status_code, "was not uploaded" in missing.text) == (422, True)
    assert sent(make, "POST", "result/", b"[]").status_code == 400
    arm = uploaded(make, make_image({"data": b"y"}, architecture="arm64"))
    assert (arm.status_code, "linux/amd64" in arm.text) == (422, True)
    assert state_of(version)[0] == "building"
    Quota.objects.create(workspace=who.workspace, scope="workspace", disk_gib=1 / 2**30)
    full = sent(make, "PUT", f"files/{SHA256}", b"bytes")
    assert (full.status_code, full.json()["errors"][0]["field"]) == (403, "file")


def test_a_lost_node_is_replaced_and_a_failed_command_is_not(who: Principal) -> None:
    alpha, beta = able("alpha"), able("beta")
    version = building(who)
    for number, played in ((1, alpha), (2, beta), (3, alpha)):
        build, make = claimed(played)
        assert build.order_number == number
        assert sent(make, "PUT", f"files/{SHA256}", b"bytes").status_code == 201
        order_lifecycle.finish(
            build, BuildState.FAILED, "It was lost.", timezone.now(), is_over=True, is_lost=True
        )
        assert sent(make, "POST", "result/", b"{}").status_code == 403
        progress.advance_waiting()
    # Nothing names what they have uploaded: the next sweep of stored files takes it.
    assert blob_names.named([SHA256]) == set()
    assert state_of(version) == ("failed", "It was ordered 3 times without a result: It was lost.")
    # Built again by hand, until its own command fails, or somebody cancels it.
    browser = client_of(who.user)
    assert "Build again" in browser.get(PAGE).content.decode()
    browser.post(f"{PAGE}build-again/")
    assert state_of(version) == ("building", "")
    build, _ = claimed(alpha)
    alpha.tell(build, "done", error="Step 2 of 2 failed: RUN true.", error_kind="environment")
    progress.advance_waiting()
    assert state_of(version) == ("failed", "Step 2 of 2 failed: RUN true.")
    Node.objects.filter(name="alpha").update(capabilities=f"{BUILDS} {CONTAINERS} {IMAGE_BUILDS}")
    address = "/api/v1/environments/boxed/versions/1/build/"
    refused = browser.post(address, {"nodes": ["alpha", "beta"]}, "application/json")
    assert (refused.status_code, "name one node" in refused.content.decode()) == (400, True)
    (ordered,) = browser.post(address, {"nodes": ["beta"]}, "application/json").json()
    assert (ordered["node"], ordered["purpose"]) == ("beta", "make")
    build_requests.cancel_build(who, ordered["id"])
    progress.advance_waiting()
    assert state_of(version) == ("failed", "The build on beta was canceled: carl canceled it.")


@pytest.mark.parametrize("is_named", [False, True])
def test_deleting_an_environment_cancels_what_nodes_build_of_it(who: Principal, is_named: bool) -> None:
    alpha, beta = able("alpha"), able("beta")
    version = building(who)
    build, make = claimed(alpha)
    assert sent(make, "PUT", f"files/{SHA256}", b"bytes").status_code == 201
    waiting = changes.create_version(who, "boxed", "dockerfile", DOCKERFILE)
    resolver.resolve(waiting.pk)
    progress.continue_version(waiting.pk)
    order = EnvironmentBuild.objects.get(own_version=waiting)
    assert (order.node, order.claimed_at) == (beta.node, None)
    if is_named:
        run = queued(who)
        Run.objects.update(state=RunState.FAILED, spec=run.spec | {"environment": {"name": "boxed"}})
    browser = client_of(who.user)
    assert browser.delete("/api/v1/environments/boxed/").status_code == 204
    assert sent(make, "PUT", f"files/{SHA256}", b"bytes").status_code == 403
    assert sent(make, "POST", "result/", json.dumps({"digest": IMAGE.digest}).encode()).status_code == 403
    # The next report of the node is answered with the order to stop it.
    answer = alpha.tell(build, "preparing")
    assert [stop.run for stop in answer.stop] == [build.pk]
    progress.continue_version(version.pk)
    progress.advance_waiting()
    assert blob_names.named([SHA256]) == set()
    assert not EnvironmentBuild.objects.filter(ended_at=None).exists()
    if not is_named:
        assert not EnvironmentBuild.objects.exists()
        return
    for row in (version, waiting):
        assert state_of(row) == ("failed", "carl deleted the environment.")
    again = browser.post("/api/v1/environments/boxed/versions/1/build/", {}, "application/json")
    assert (again.status_code, "boxed was deleted" in again.content.decode()) == (400, True)


def test_the_login_of_a_registry_goes_to_the_node_that_builds(who: Principal) -> None:
    browser = client_of(who.user)
    form = {"name": "boxed", "source": DOCKERFILE, "registry_secret": "LOGIN"}
    assert browser.post("/environments/new/?kind=dockerfile", form).status_code == 302
    version = EnvironmentVersion.objects.get()
    resolver.resolve(version.pk)
    assert "There is no secret LOGIN of the workspace" in state_of(version)[1]
    page = browser.get("/environments/boxed/edit/").content.decode()
    assert ('value="LOGIN"' in page, "registry_secret:" in page) == (True, False)
    store.put(principal_of(make_owner()), "LOGIN", "team:sesame", store.WORKSPACE)
    alpha = able("alpha")
    version = changes.create_version(who, "boxed", "dockerfile", version.source)
    resolver.resolve(version.pk)
    progress.continue_version(version.pk)
    build, make = claimed(alpha)
    assert (make["dockerfile"], make["has_registry_login"]) == (DOCKERFILE, True)
    assert "sesame" not in json.dumps(make)
    # Whoever orders it meanwhile gets the same build.
    again = browser.post("/api/v1/environments/boxed/versions/2/build/", {}, "application/json")
    assert [item["id"] for item in again.json()] == [build.pk]
    answer = sent(make, "GET", "registry-login/")
    assert answer.json() == {
        "registry": "docker.io",
        "user": "team",
        "password": "sesame",
        "secret": "LOGIN",
    }
    assert sent(make, "GET", "registry-login/", ticket="thu_wrong").status_code == 401
    assert AuditEvent.objects.filter(verb="secret.used", subject="LOGIN").count() == 2
    order_lifecycle.finish(build, BuildState.FAILED, "No.", timezone.now(), is_over=True)
    assert sent(make, "GET", "registry-login/").status_code == 403


def test_the_form_writes_a_dockerfile_and_shows_errors_at_their_fields(who: Principal) -> None:
    browser = client_of(who.user)
    address = "/environments/new/?kind=dockerfile"
    form = {
        "name": "boxed",
        "source": "",
        "base_image": "python:3.11",
        "debian_packages": "git\r\n",
        "write": "1",
    }
    page = browser.post(address, form).content.decode()
    assert "FROM python:3.11\nRUN apt-get update" in page
    assert not EnvironmentVersion.objects.exists()
    wrong = browser.post(address, {**form, "base_image": "A"})
    assert 'id="base_image-error"' in wrong.content.decode()
    copied = browser.post(address, {"name": "boxed", "source": "FROM a\r\nCOPY . /\r\n"})
    assert (copied.status_code, "Line 2: COPY has no files" in copied.content.decode()) == (400, True)
    # Too large for a Dockerfile, for a file, and for a form or a body of the API.
    for size, words in ((200_000, "use at most 65,536"), (9_000_000, "most 8.0\xa0MB|than the 8 MiB")):
        text = f"FROM a\n{'#' * size}\n"
        typed = browser.post(address, {"name": "boxed", "source": text})
        body = {"name": "boxed", "kind": "dockerfile", "dockerfile": text}
        sent_body = browser.post("/api/v1/environments/", body, "application/json")
        for answer in (typed, sent_body):
            assert answer.status_code in (400, 413)
            assert re.search(words, answer.content.decode())
    file = SimpleUploadedFile("Dockerfile", b"#" * 3_000_000)
    chosen = browser.post(address, {"name": "boxed", "source": "", "file": file}).content.decode()
    assert "The file must have at most 2048 KiB" in chosen
    assert browser.post(address, {"name": "boxed", "source": DOCKERFILE}).status_code == 302
