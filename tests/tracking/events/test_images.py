"""Images of event files: how they are read, stored as files of the run, and thinned out, and what hostile
ones do."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import Artifact, Run
from tests.jobs.builders import running
from tests.tracking.events.files import NAME, event, event_file, image, images, new, text
from tracking.events import image_store, pending_attempts
from tracking.events.image_store import MAX_SERIES, MAX_STEPS, StepImage
from tracking.events.images import MAX_PER_STEP, read_images
from tracking.events.thinning import surplus_steps
from tracking.media.media_grid import media_grid
from workspaces.access import Principal
from workspaces.stored_files import blobs

PNG, JPEG = b"\x89PNG\r\n\x1a\n one", b"\xff\xd8\xff two"


def paths(run: Run) -> list[str]:
    rows = Artifact.objects.filter(run=run).order_by("path")
    return list(rows.values_list("path", flat=True))


class TestReading:
    @pytest.mark.parametrize("value", [image("cats", PNG), images("cats", PNG)])
    def test_both_formats(self, value: Any) -> None:
        assert [(item.path, item.content) for item in read_images(value, "cats", 7)] == [
            ("tensorboard-images/cats/step_7.png", PNG)
        ]

    def test_several_of_one_step_are_series_of_their_own(self) -> None:
        found = read_images(images("cats", PNG, JPEG, *[PNG] * MAX_PER_STEP), "cats", 7)
        assert len(found) == MAX_PER_STEP
        assert [item.path for item in found][:2] == [
            "tensorboard-images/cats/step_7.png",
            "tensorboard-images/cats/1/step_7.jpg",
        ]

    @pytest.mark.parametrize(
        "value",
        [
            new("loss", 1.0),
            text("note", "\x89PNG"),
            image("a", b"<svg onload='alert(1)'/>"),
            image("a", b""),
            images("a"),
        ],
    )
    def test_what_is_none_or_of_another_kind_is_left_out(self, value: Any) -> None:
        assert read_images(value, "a", 1) == []

    def test_a_step_before_zero_is_left_out(self) -> None:
        assert read_images(image("a", PNG), "a", -1) == []

    @pytest.mark.parametrize(
        ("key", "folder"),
        [
            ("samples/dogs", "tensorboard-images/samples/dogs"),
            ("../../etc", "tensorboard-images/_/_/etc"),
            ("/a//b", "tensorboard-images/_/a/_/b"),
            ("a\\b?<c>", "tensorboard-images/a_b__c_"),
        ],
    )
    def test_a_tag_leads_nowhere_else(self, key: str, folder: str) -> None:
        assert StepImage(key, 0, 1, ".png", PNG).folder == folder


class TestThinning:
    @pytest.mark.parametrize("added", [1, 20, 500])
    def test_what_stays_is_spread_however_it_came(self, added: int) -> None:
        kept: set[int] = set()
        for start in range(0, 2000, added):
            kept |= set(range(start, start + added))
            kept -= surplus_steps(kept, 100)
        assert len(kept) == 100
        assert (min(kept), max(kept)) == (0, 1999)
        assert 40 <= sum(step < 1000 for step in kept) <= 60

    def test_few_all_stay(self) -> None:
        assert surplus_steps(range(100), 100) == set()


@pytest.mark.django_db
class TestStoring:
    def test_they_are_files_that_the_tab_shows(self, who: Principal) -> None:
        node, run = running(who)
        events = [event(image("cats", PNG + bytes([step])), new("loss", 1.0), step=step) for step in (0, 10)]
        node.log(run, f"logs/tb/{NAME}", 0, event_file(*events))
        pending_attempts.read_pending()
        assert paths(run) == ["tensorboard-images/cats/step_0.png", "tensorboard-images/cats/step_10.png"]
        last = Artifact.objects.get(run=run, path="tensorboard-images/cats/step_10.png")
        assert blobs.path(last.sha256).read_bytes() == PNG + bytes([10])
        (row,) = media_grid([(run, run.attempt)]).rows
        assert (row.kind, [file.step for file in row.cells[0].series.files]) == ("image", [0, 10])

    def test_many_steps_are_thinned_out(self, who: Principal) -> None:
        run = running(who)[1]
        for start in range(0, 300, 50):
            self._store(run, [StepImage("cats", 0, step, ".png", PNG) for step in range(start, start + 50)])
        assert len(paths(run)) == MAX_STEPS

    def test_of_many_tags_the_first_stay(self, who: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(image_store, "MAX_SERIES", 3)
        run = running(who)[1]
        self._store(run, [StepImage(f"tag {number}", 0, 1, ".png", PNG) for number in range(5)])
        self._store(run, [StepImage("one more", 0, 1, ".png", PNG), StepImage("tag 1", 0, 2, ".png", PNG)])
        assert len({path.split("/")[1] for path in paths(run)}) == 3
        assert "tensorboard-images/tag 1/step_2.png" in paths(run)
        assert MAX_SERIES > 3

    @staticmethod
    def _store(run: Run, images_: list[StepImage]) -> None:
        image_store.add(run, run.attempt, image_store.write(run, run.attempt, images_))
