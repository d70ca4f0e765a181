"""Files are grouped into series by what their names say about key and step."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tracking.media.step_files import (
    DOCUMENT,
    IMAGE,
    MAX_SERIES,
    MAX_STEPS,
    PAGE,
    SOUND,
    StepFile,
    group_step_files,
)

ID = "3f2a9c1e-6d0b-4b43-9a3c-2f5f0a1b7c11"


def logged(key: str, step: int, at: int, mark: str = "+", end: str = ".png") -> str:
    """The name that MLflow's client gives an image."""
    return f"images/{mark.join([key, 'step', str(step), 'timestamp', str(at), ID])}{end}"


class TestMlflow:
    @pytest.mark.parametrize(("mark", "key"), [("+", "eval~dogs"), ("%", "eval#dogs")])
    def test_images_of_both_versions_are_a_series_of_their_key(self, mark: str, key: str) -> None:
        paths = [logged(key, step, at, mark) for step, at in ((20, 3), (0, 1), (10, 2))]
        (series,) = group_step_files(paths)
        assert (series.key, series.kind) == ("eval/dogs", IMAGE)
        assert [file.step for file in series.files] == [0, 10, 20]
        assert {file.path for file in series.files} == set(paths)

    def test_the_smaller_version_belongs_to_its_image(self) -> None:
        small, whole = logged("dogs", 1, 5, end="+compressed.webp"), logged("dogs", 1, 5)
        for paths in ([small, whole], [whole, small]):
            (series,) = group_step_files(paths)
            assert series.files == (StepFile(1, whole, small, 5),)

    def test_of_two_images_of_a_step_the_later_counts(self) -> None:
        (series,) = group_step_files([logged("dogs", 1, 1001), logged("dogs", 1, 1000)])
        assert [file.path for file in series.files] == [logged("dogs", 1, 1001)]

    def test_a_negative_step_comes_first(self) -> None:
        (series,) = group_step_files([logged("dogs", 0, 2), logged("dogs", -1, 1)])
        assert [file.step for file in series.files] == [-1, 0]


class TestNumberedNames:
    @pytest.mark.parametrize(
        ("path", "key", "step", "kind"),
        [
            ("samples/step_0100.png", "samples/step_*.png", 100, IMAGE),
            ("samples/global_step-7.JPG", "samples/global_step-*.JPG", 7, IMAGE),
            ("epoch=3/grid.webp", "epoch=*/grid.webp", 3, IMAGE),
            ("epoch_1/step_20.png", "epoch_1/step_*.png", 20, IMAGE),
            ("iter000.svg", "iter*.svg", 0, IMAGE),
            ("speech/Step 12.wav", "speech/Step *.wav", 12, SOUND),
            ("answers/step_10.json", "answers/step_*.json", 10, DOCUMENT),
            ("step_10/answers.csv", "step_*/answers.csv", 10, DOCUMENT),
            ("report_step_3.html", "report_step_*.html", 3, PAGE),
        ],
    )
    def test_have_a_key_and_a_step(self, path: str, key: str, step: int, kind: str) -> None:
        (series,) = group_step_files([path])
        assert (series.key, series.kind, series.files) == (key, kind, (StepFile(step, path),))

    @pytest.mark.parametrize(
        "path",
        [
            "samples/grid.png",
            "step_1.txt",
            "footstep_3.png",
            "steps.png",
            "model/weights.bin",
            "step_1",
            "step_7/config.json",
        ],
    )
    def test_others_are_left_out(self, path: str) -> None:
        assert group_step_files([path]) == ()


class TestLimits:
    def test_many_steps_are_thinned_evenly_and_keep_first_and_last(self) -> None:
        (series,) = group_step_files(f"step_{step}.png" for step in range(MAX_STEPS * 10))
        steps = [file.step for file in series.files]
        assert len(steps) == MAX_STEPS
        assert (steps[0], steps[-1]) == (0, MAX_STEPS * 10 - 1)
        gaps = {later - earlier for earlier, later in pairwise(steps)}
        assert gaps <= {10, 11}

    def test_of_many_series_the_first_are_kept(self) -> None:
        assert len(group_step_files(f"{name}/step_1.png" for name in range(MAX_SERIES + 5))) == MAX_SERIES

    def test_many_json_files_do_not_displace_an_image(self) -> None:
        paths = [f"{name}/step_1.json" for name in range(MAX_SERIES + 5)]
        assert group_step_files([*paths, "zebra_step_1.png"])[0].key == "zebra_step_*.png"
