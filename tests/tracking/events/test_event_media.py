"""Images and sounds of event files: how they are read, stored as files of the run, and thinned out, and what
hostile ones do."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import Artifact, Run
from tests.jobs.builders import running
from tests.tracking.events.files import NAME, event, event_file, image, images, new, sound, sounds, text
from tracking.events import media_store, pending_attempts
from tracking.events.event_media import MAX_PER_STEP, read_media
from tracking.events.media_store import MAX_SERIES, MAX_STEPS, StepMedia
from tracking.events.thinning import surplus_steps
from tracking.media.media_grid import media_grid
from workspaces.access import Principal
from workspaces.stored_files import blobs

PNG, JPEG, WAVE = b"\x89PNG\r\n\x1a\n one", b"\xff\xd8\xff two", b"RIFF\x00\x00\x00\x00WAVE three"


def paths(run: Run) -> list[str]:
    rows = Artifact.objects.filter(run=run).order_by("path")
    return list(rows.values_list("path", flat=True))


class TestReading:
    @pytest.mark.parametrize("value", [image("cats", PNG), images("cats", PNG)])
    def test_both_formats(self, value: Any) -> None:
        assert [(item.path, item.content) for item in read_media(value, "cats", 7)] == [
            ("tensorboard-images/cats/step_7.png", PNG)
        ]

    @pytest.mark.parametrize("value", [sound("speech", WAVE), sounds("speech", WAVE)])
    def test_sounds_in_both_formats(self, value: Any) -> None:
        assert [(item.path, item.content) for item in read_media(value, "speech", 7)] == [
            ("tensorboard-sounds/speech/step_7.wav", WAVE)
        ]

    def test_of_several_sounds_the_labels_are_left_out(self) -> None:
        clips = read_media(sounds("speech", WAVE, WAVE), "speech", 7)
        assert [item.path for item in clips] == [
            "tensorboard-sounds/speech/step_7.wav",
            "tensorboard-sounds/speech/1/step_7.wav",
        ]

    def test_several_of_one_step_are_series_of_their_own(self) -> None:
        found = read_media(images("cats", PNG, JPEG, *[PNG] * MAX_PER_STEP), "cats", 7)
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
            image("a", WAVE),
            sound("a", PNG),
            images("a"),
        ],
    )
    def test_what_is_none_or_of_another_kind_is_left_out(self, value: Any) -> None:
        assert read_media(value, "a", 1) == []

    def test_a_step_before_zero_is_left_out(self) -> None:
        assert read_media(image("a", PNG), "a", -1) == []

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
        assert StepMedia(key, 0, 1, ".png", PNG).folder == folder


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
            self._store(run, [StepMedia("cats", 0, step, ".png", PNG) for step in range(start, start + 50)])
        assert len(paths(run)) == MAX_STEPS

    def test_of_many_tags_the_first_stay(self, who: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(media_store, "MAX_SERIES", 3)
        run = running(who)[1]
        self._store(run, [StepMedia(f"tag {number}", 0, 1, ".png", PNG) for number in range(5)])
        self._store(run, [StepMedia("one more", 0, 1, ".png", PNG), StepMedia("tag 1", 0, 2, ".png", PNG)])
        assert len({path.split("/")[1] for path in paths(run)}) == 3
        assert "tensorboard-images/tag 1/step_2.png" in paths(run)
        assert MAX_SERIES > 3

    @staticmethod
    def _store(run: Run, images_: list[StepMedia]) -> None:
        media_store.add(run, run.attempt, media_store.write(run, run.attempt, images_))
