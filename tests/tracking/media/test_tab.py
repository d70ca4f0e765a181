"""The Media tab of a run, whole and when its files change."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from jobs import outputs
from jobs.models import Run
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


def test_of_an_earlier_attempt_has_the_histograms_of_that_alone() -> None:
    person = make_contributor()
    _, run = running(principal_of(person))
    for attempt, low in ((1, -1), (2, -2)):
        histogram_store.append(run, attempt, [HistogramPoint("a", attempt, Buckets(low, 1, [1.0]))])
    Run.objects.filter(pk=run.pk).update(attempt=2)
    client, address = client_of(person), f"/runs/{run.number}/media/histogram/?key=a"
    steps = {
        query: [item["low"] for item in client.get(address + query).json()["steps"]]
        for query in ("", "&attempt=1", "&attempt=2")
    }
    assert steps == {"": [-1, -2], "&attempt=1": [-1], "&attempt=2": [-1, -2]}


def test_shows_the_smaller_version_of_an_image_and_leads_to_the_whole_one() -> None:
    run, client = logged_run(attempt=2), client_of(make_contributor())
    name = "images/dogs+step+5+timestamp+1000+3f2a9c1e-6d0b-4b43-9a3c-2f5f0a1b7c11"
    for attempt in (1, 2):
        for end in (".png", "+compressed.webp"):
            outputs.put_output(run, attempt, name + end, blob(b"image"), 5)
    source = f"/api/v1/artifacts/images/{run.experiment_id}/{run.pk}/artifacts/{quote(name)}"
    file = quote(f"{name}.png", safe="")
    page = client.get(f"/runs/{run.number}/media/").content.decode()
    assert f'src="{source}%2Bcompressed.webp"' in page
    assert f'href="/runs/{run.number}/outputs/?file={file}"' in page
    earlier = client.get(f"/runs/{run.number}/media/?attempt=1").content.decode()
    assert f'src="{source}%2Bcompressed.webp?attempt=1"' in earlier
    assert f'href="/runs/{run.number}/outputs/?attempt=1&amp;file={file}"' in earlier


def test_changes_when_a_file_is_saved_again() -> None:
    """MLflow's `log_table` does so when it appends rows; an open page shows them only if its data differ."""
    run = logged_run()

    def config_with(content: bytes) -> dict[str, object]:
        outputs.put_output(run, 0, "samples/step_1.json", blob(content), len(content))
        return media_grid([(run, 0)]).config()

    before = config_with(b'{"columns": ["a"], "data": [[1]]}')
    assert media_grid([(run, 0)]).config() == before
    assert config_with(b'{"columns": ["a"], "data": [[1], [2]]}') != before
