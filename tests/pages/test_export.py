"""A run's page offers it in the formats of other launchers."""

from __future__ import annotations

import io
import zipfile

import pytest

from jobs.exports import FORMATS
from jobs.models import Run
from tests.jobs import builders
from tests.pages.builders import failed, text_of
from tests.people import client_of, make_viewer
from workspaces.access import Principal

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(who: Principal) -> Run:
    return failed(who)


@pytest.mark.parametrize("to", FORMATS)
def test_each_format_shows_its_files_and_what_differs(run: Run, to: str) -> None:
    text = text_of(client_of(make_viewer()), f"/runs/{run.number}/export/?to={to}")
    assert FORMATS[to].label in text
    assert "What differs" in text
    assert "trainhub-spec" in text
    assert 'aria-current="page"' in text


def test_the_page_of_the_spec_leads_to_it(run: Run) -> None:
    assert f"/runs/{run.number}/export/" in text_of(client_of(make_viewer()), f"/runs/{run.number}/spec/")


def test_a_file_is_downloaded_as_it_is_shown(run: Run) -> None:
    answer = client_of(make_viewer()).get(f"/runs/{run.number}/export/download/?to=sbatch&file=run.sbatch")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="run.sbatch"'
    assert answer.content.startswith(b"#!/bin/bash\n#SBATCH --job-name=")


def test_several_files_come_as_a_zip(run: Run) -> None:
    run.spec = {**run.spec, "distribution": {"type": "mpi", "node_count": 2}}
    run.save(update_fields=["spec"])
    answer = client_of(make_viewer()).get(f"/runs/{run.number}/export/download/?to=commands")
    names = zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
    assert names == ["node_0.sh", "node_1.sh"]


def test_a_spec_that_cannot_be_planned_says_why(run: Run) -> None:
    processes = builders.processes(3) | {"node_count": 2}
    run.spec = {**run.spec, "distribution": processes}
    run.save(update_fields=["spec"])
    text = text_of(client_of(make_viewer()), f"/runs/{run.number}/export/")
    assert "distribution.process_count: 3 processes cannot be divided evenly" in text


@pytest.mark.parametrize("query", ["file=../x", "file=passwd", "to=commands&file=run.sbatch"])
def test_no_other_file_is_served(run: Run, query: str) -> None:
    assert client_of(make_viewer()).get(f"/runs/{run.number}/export/download/?{query}").status_code == 404
