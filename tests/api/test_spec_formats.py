"""Specs in the formats of other launchers, by the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.exports import FORMATS
from jobs.models import Run
from tests.api.asking import post, refused
from tests.jobs.exports.specs import GOLDEN_SPECS

EXPORT, IMPORT = "/api/v1/specs/export/", "/api/v1/specs/import/"


@pytest.fixture
def full() -> dict[str, Any]:
    return GOLDEN_SPECS["full"].to_json()


@pytest.mark.parametrize("to", FORMATS)
def test_a_viewer_exports_to_any_format_and_nothing_is_created(
    viewer_api: Client, full: dict[str, Any], to: str
) -> None:
    answer = post(viewer_api, EXPORT, {"spec": full, "to": to})
    assert answer.status_code == 200, answer.content
    assert answer.json()["files"]
    note = answer.json()["notes"][0]
    assert set(note) == {"line", "field", "what", "message"}
    assert not Run.objects.exists()


@pytest.mark.parametrize("to", ["sbatch", "azureml", "skypilot", "dstack"])
def test_what_was_exported_is_imported_unchanged(viewer_api: Client, full: dict[str, Any], to: str) -> None:
    (text,) = post(viewer_api, EXPORT, {"spec": full, "to": to}).json()["files"].values()
    answer = post(viewer_api, IMPORT, {"from": to, "text": text})
    assert answer.status_code == 200, answer.content
    assert answer.json()["spec"] == full
    assert [note["what"] for note in answer.json()["notes"]] == ["taken"]


def test_an_imported_spec_can_be_exported_before_it_has_code(viewer_api: Client) -> None:
    text = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH -p gpu\nsrun python train.py\n"
    body = post(viewer_api, IMPORT, {"from": "sbatch", "text": text}).json()
    assert "source" not in body["spec"]
    assert [note["line"] for note in body["notes"]] == [2, 3, 4, 4, None]
    answer = post(viewer_api, EXPORT, {"spec": body["spec"], "to": "torchx"})
    assert answer.status_code == 200


class TestRefusals:
    def test_another_format(self, viewer_api: Client, full: dict[str, Any]) -> None:
        refused(post(viewer_api, EXPORT, {"spec": full, "to": "pbs"}), 400, "to", "use sbatch or commands")
        refused(post(viewer_api, IMPORT, {"from": "pbs", "text": "x"}), 400, "from", "use sbatch or azureml")

    def test_determined_names_the_command(self, viewer_api: Client) -> None:
        answer = post(viewer_api, IMPORT, {"from": "determined", "text": "name: x"})
        refused(answer, 400, "from", "trainhub import FILE --from determined")

    def test_a_wrong_field_of_the_spec(self, viewer_api: Client, full: dict[str, Any]) -> None:
        wrong = {**full, "limits": {"grace_s": -1}}
        refused(
            post(viewer_api, EXPORT, {"spec": wrong, "to": "sbatch"}), 400, "spec.limits.grace_s", "between 0"
        )
        refused(post(viewer_api, EXPORT, {"to": "sbatch"}), 400, "spec", "must be a JSON object")

    def test_processes_that_cannot_be_divided(self, viewer_api: Client, full: dict[str, Any]) -> None:
        full["distribution"]["process_count"] = 7
        answer = post(viewer_api, EXPORT, {"spec": full, "to": "sbatch"})
        refused(answer, 400, "spec.distribution.process_count", "cannot be divided evenly")

    def test_a_field_that_does_not_exist(self, viewer_api: Client, full: dict[str, Any]) -> None:
        refused(
            post(viewer_api, EXPORT, {"spec": full, "to": "sbatch", "a": 1}), 400, "a", "not a known field"
        )

    @pytest.mark.parametrize("text", ["a: \ud800", "#!/bin/bash\npython \ud800\n"])
    def test_half_of_a_surrogate_pair(self, viewer_api: Client, text: str) -> None:
        answer = post(viewer_api, IMPORT, {"from": "sbatch", "text": text})
        refused(answer, 400, "text", "not valid Unicode")

    def test_a_bomb_of_aliases(self, viewer_api: Client) -> None:
        text = "a: &a [x, x]\nb: [*a, *a]\n"
        refused(post(viewer_api, IMPORT, {"from": "dstack", "text": text}), 400, "text", "line 2: *a")

    def test_a_text_that_is_too_long(self, viewer_api: Client) -> None:
        answer = post(viewer_api, IMPORT, {"from": "sbatch", "text": "#" * (256 * 1024 + 1)})
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["field"] == "text"
