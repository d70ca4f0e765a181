"""The form for a container image, the page of a version, the wizard's choice, and the warning of an image for
CPUs."""

from __future__ import annotations

import json

import pytest

from clusters.models import Node
from environments.images.display import compare_images
from environments.images.image_lock import ImageLock, make_image_lock, read_image_lock
from environments.images.reference import parse_reference
from environments.images.registry_client import StoredManifest
from environments.models import EnvironmentVersion
from environments.states import VersionState
from jobs.scheduling.run_preview import preview
from jobs.wizard.choices import environment_choices
from tests.environments.images.container_images import make_image
from tests.environments.locks import put_secret
from tests.jobs.builders import node, spec
from tests.people import client_of
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import CONTAINERS
from workspaces.access import Principal

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
CUDA = ("CUDA_VERSION=12.8.1", "PYTHON_VERSION=3.12.4")


def lock_of(environment: tuple[str, ...] = CUDA, reference: str = "docker.io/team/train:1") -> ImageLock:
    image = make_image({"data": bytes(2_000_000)}, environment=environment)
    config = image.blobs[json.loads(image.manifest)["config"]["digest"]]
    return make_image_lock(
        reference, StoredManifest(image.manifest, image.media_type), image.media_type, config
    )


def locked_image(who: Principal, lock: ImageLock) -> EnvironmentVersion:
    """Makes a version by the form, and locks it without a registry."""
    form = {"name": "boxed", "source": " team/train:1 ", "registry_secret": "team-registry"}
    answer = client_of(who.user).post("/environments/new/?kind=image", form)
    assert answer.status_code == 302, answer.content.decode()
    version = EnvironmentVersion.objects.order_by("-number")[0]
    version.state, version.lock = VersionState.LOCKED, lock.text
    version.save()
    return version


def test_the_form_names_the_login_and_the_page_shows_the_image(who: Principal) -> None:
    put_secret("team-registry", "team:open sesame")
    browser = client_of(who.user)
    assert '<option value="team-registry">' in browser.get("/environments/new/?kind=image").content.decode()
    lock = lock_of()
    version = locked_image(who, lock)
    assert version.source == "team/train:1\nregistry_secret: team-registry"
    page = browser.get("/environments/boxed/versions/1/").content.decode()
    for text in (lock.digest, lock.image_id, "CUDA 12.8.1", "3.12.4", "1.9 MiB", "/bin/start", "/work"):
        assert text in page, text
    assert "sesame" not in page
    edit = browser.get("/environments/boxed/edit/").content.decode()
    assert 'value="team/train:1"' in edit
    assert 'value="team-registry"' in edit
    file = browser.get("/environments/boxed/versions/1/image.lock.json")
    assert read_image_lock(file.content.decode()) == lock


@pytest.mark.parametrize(
    ("form", "field", "words"),
    [
        ({"source": "https://ghcr.io/x"}, "source", "Leave out https:// and write ghcr.io/x."),
        ({"source": "x", "registry_secret": "a b"}, "registry_secret", "Must be the name of a secret"),
    ],
)
def test_the_form_shows_the_error_at_its_field(
    who: Principal, form: dict[str, str], field: str, words: str
) -> None:
    answer = client_of(who.user).post("/environments/new/?kind=image", {"name": "boxed", **form})
    page = answer.content.decode()
    assert answer.status_code == 400
    assert words in page.partition(f'id="{field}-error"')[2][:200]


def test_the_wizard_shows_image_and_size(who: Principal) -> None:
    locked_image(who, lock_of())
    choice = environment_choices(who.workspace)[0]
    assert choice.value == "boxed:1"
    assert choice.sentence.startswith("Image docker.io/team/train:1, 1.9 MiB to pull, CUDA 12.8.1")


@pytest.mark.parametrize(
    ("variables", "gpus", "is_warned"), [(("A=b",), 1, True), (CUDA, 1, False), ((), 0, False)]
)
def test_an_image_for_cpus_is_a_warning_where_a_run_has_gpus(
    who: Principal, variables: tuple[str, ...], gpus: int, is_warned: bool
) -> None:
    node("alpha", gpus=1)
    Node.objects.update(capabilities=f"secrets {CONTAINERS}")
    locked_image(who, lock_of(variables))
    findings = preview(
        spec(who, environment={"name": "boxed"}, resources={"gpus_per_node": gpus}), who
    ).findings
    warnings = [item for item in findings if "seems to be for CPUs only" in item.message]
    assert [(item.level, item.field) for item in warnings] == [("warning", "environment.name")] * is_warned


def test_two_images_are_compared_by_what_is_known(who: Principal) -> None:
    changes = compare_images(lock_of(), lock_of(("CUDA_VERSION=13.0",)))
    assert [(item.name, item.before, item.after) for item in changes][1:] == [
        ("CUDA_VERSION", "12.8.1", "13.0"),
        ("PYTHON_VERSION", "3.12.4", ""),
    ]
    assert changes[0].name == "digest"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("python", "docker.io/library/python:latest"),
        ("team/x:1", "docker.io/team/x:1"),
        ("docker.io/python:3", "docker.io/library/python:3"),
        ("index.docker.io/a/b", "docker.io/a/b:latest"),
        ("localhost/x", "localhost/x:latest"),
        ("localhost:5000/x:v1", "localhost:5000/x:v1"),
        ("[::1]:5000/a/b", "[::1]:5000/a/b:latest"),
        ("ghcr.io/a/b/c__d--e.f:1", "ghcr.io/a/b/c__d--e.f:1"),
        (f"x@sha256:{'a' * 64}", f"docker.io/library/x@sha256:{'a' * 64}"),
        (f"x:1@sha256:{'a' * 64}", f"docker.io/library/x:1@sha256:{'a' * 64}"),
    ],
)
def test_short_references_mean_what_docker_means(text: str, whole: str) -> None:
    assert str(parse_reference(text)) == whole
    assert str(parse_reference(whole)) == whole


@pytest.mark.parametrize(
    "text", ["", "docker://x", "a//b", "a:", "x:y z", "-a", "a..b", "host:99999/x", "x@sha256:1", "x@md5:1"]
)
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(SpecError) as error:
        parse_reference(text)
    assert error.value.field == "image"
