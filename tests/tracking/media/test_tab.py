"""The Media tab of a run that has nothing but histograms."""

from __future__ import annotations

import pytest

from tests.jobs.builders import running
from tests.people import client_of, make_contributor, principal_of
from tracking.events import histogram_store
from tracking.events.histogram_store import Buckets, HistogramPoint

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
