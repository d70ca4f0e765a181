"""A file of another launcher becomes a draft of the wizard."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from jobs.exports import export_spec
from jobs.models import Draft
from jobs.wizard import drafts
from jobs.wizard.evaluation import evaluate
from tests.jobs.exports.specs import GOLDEN_SPECS
from tests.jobs.imports.test_foreign import AZUREML, DDP_ON_SLURM, DSTACK, SKYPILOT
from tests.people import client_of, make_viewer
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
ADDRESS = "/runs/new/import/"


def test_the_start_of_the_wizard_leads_to_it(client: Client) -> None:
    assert ADDRESS in client.get("/runs/new/").content.decode()
    assert "The whole file" in client.get(ADDRESS).content.decode()


@pytest.mark.parametrize(
    ("source", "text"),
    [("sbatch", DDP_ON_SLURM), ("skypilot", SKYPILOT), ("dstack", DSTACK), ("azureml", AZUREML)],
)
def test_a_draft_is_made_with_a_note_on_each_line(client: Client, source: str, text: str) -> None:
    answer = client.post(ADDRESS, {"source": source, "text": text.replace("\n", "\r\n")})
    assert answer.status_code == 200
    page = answer.content.decode()
    draft = Draft.objects.get()
    assert f"/runs/new/{draft.pk}/source/" in page
    assert "no counterpart" in page
    assert client.get(f"/runs/new/{draft.pk}/source/").status_code == 200


def test_only_the_code_is_missing_then(client: Client, who: Principal) -> None:
    client.post(ADDRESS, {"source": "sbatch", "text": DDP_ON_SLURM})
    errors = evaluate(drafts.find(who, Draft.objects.get().pk), who).errors
    assert {re.split(r"[.\[]", error.field)[0] for error in errors} <= {"source", "cluster"}


def test_our_own_file_comes_back_with_its_source(client: Client) -> None:
    (text,) = export_spec(GOLDEN_SPECS["full"], "sbatch").files.values()
    file = SimpleUploadedFile("run.sbatch", text.encode())
    answer = client.post(ADDRESS, {"source": "sbatch", "text": "", "file": file})
    assert answer.status_code == 200
    assert "the whole spec is taken" in answer.content.decode()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"source": "pbs", "text": "x"}, "is no format"),
        ({"source": "sbatch", "text": ""}, "paste the whole file"),
        ({"source": "dstack", "text": "a: &a 1\nb: *a\n"}, "line 2: *a is not possible here"),
        ({"source": "sbatch", "text": "#!/bin/bash\n"}, "name the script to run"),
    ],
)
def test_what_cannot_be_read_is_said_and_stays_in_the_form(
    client: Client, fields: dict[str, str], words: str
) -> None:
    answer = client.post(ADDRESS, fields)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not Draft.objects.exists()


def test_a_file_that_is_no_text(client: Client) -> None:
    file = SimpleUploadedFile("x", b"\xff\xfe")
    answer = client.post(ADDRESS, {"source": "sbatch", "file": file})
    assert "not text in UTF-8" in answer.content.decode()


def test_viewers_import_nothing() -> None:
    assert client_of(make_viewer()).post(ADDRESS, {"source": "sbatch", "text": "x"}).status_code == 403
