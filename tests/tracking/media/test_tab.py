"""The Media tab of a run, whole and when its files change."""

from __future__ import annotations

import pytest

from jobs import outputs
from tests.jobs.builders import running
from tests.people import client_of, make_contributor, principal_of
from tests.registry.builders import blob
from tests.tracking.builders import logged_run
from tracking.events import histogram_store
from tracking.events.histogram_store import Buckets, HistogramPoint
from tracking.media.media_grid import media_grid

pytestmark = pytest.mark.django_db


def test_shows_its_histograms_and_sends_their_numbers() -> None:
    person = make_contributor()
    _, run = running(principal_of(person))
    points = [HistogramPoint("a & b", step, Buckets(-1, 1, [1.0, 2.0])) for step in (0, 5)]
    histogram_store.append(run, run.attempt, points)
    client = client_of(person)
    page = client.get(f"/runs/{run.number}/media/").content.decode()
    assert 'class="md-histogram"' in page
    assert "a &amp; b at step 5" in page
    numbers = client.get(f"/runs/{run.number}/media/histogram/", {"key": "a & b"}).json()["steps"]
    assert numbers[0] == {"step": 0, "low": -1, "high": 1, "counts": [1, 2]}
    assert [item["step"] for item in numbers] == [0, 5]
    assert client.get(f"/runs/{run.number}/media/histogram/", {"key": "none\0"}).json() == {"steps": []}


def test_changes_when_a_file_is_saved_again() -> None:
    """MLflow's `log_table` does so when it appends rows; an open page shows them only if its data differ."""
    run = logged_run()

    def config_with(content: bytes) -> dict[str, object]:
        outputs.put_output(run, 0, "samples/step_1.json", blob(content), len(content))
        return media_grid([(run, 0)]).config()

    before = config_with(b'{"columns": ["a"], "data": [[1]]}')
    assert media_grid([(run, 0)]).config() == before
    assert config_with(b'{"columns": ["a"], "data": [[1], [2]]}') != before
