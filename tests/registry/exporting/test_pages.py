from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from registry.exports.completion import settle_all
from registry.models import Export
from tests.jobs.builders import node
from tests.people import api_client, client_of, make_contributor, make_person, make_viewer, make_workspace
from tests.registry.exporting.builders import FOUND, REFUSAL, TYPED, ends, started, version
from workspaces.states import Role

pytestmark = pytest.mark.django_db
FORM = "/models/digits/versions/1/export/"
PART = "/models/digits/versions/1/exports/"
API = "/api/v1/models/digits/versions/1/exports/"
FILLED = {
    "file": "model.pt",
    "inputs": "images: 1x1x8x8 float32\n",
    "dynamic": "0=batch",
    "factory": "model:make_model",
    "relative": "1e-4",
    "absolute": "1e-5",
    "opset": "",
    "environment": "TrainHub-ONNX-1.23",
    "cluster": "local",
}


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def posted(**changes: str) -> tuple[int, str]:
    response = client_of(make_contributor()).post(FORM, {**FILLED, **changes})
    return response.status_code, response.content.decode()


class TestForm:
    def test_offers_what_there_is(self) -> None:
        version("best.pt2")
        page = text_of(client_of(make_contributor()), FORM)
        for words in (
            '<option value="best.pt2"',
            "TrainHub-ONNX-1.23",
            "model:make_model",
            "never on the hub",
        ):
            assert words in page, words

    def test_starts_a_run_and_shows_it(self) -> None:
        version()
        node()
        status, _ = posted()
        export = Export.objects.select_related("run").get()
        assert status == 302
        assert export.run is not None
        assert export.options == TYPED.to_json()

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"inputs": "one by one"}, "cannot be read; write SHAPE TYPE"),
            ({"absolute": "small"}, "Enter a number."),
            ({"file": ""}, "Choose a file of this version."),
            ({"opset": "3"}, "Must be from 18 to 23"),
            ({"cluster": "moon"}, "There is no cluster"),
            ({"environment": "nope"}, "No environment is called"),
        ],
    )
    def test_keeps_what_was_typed_and_names_the_field(self, change: dict[str, str], words: str) -> None:
        version()
        node()
        status, page = posted(**change)
        assert status == 422
        assert words in page
        assert 'value="model:make_model"' in page
        assert not Export.objects.exists()

    def test_begins_again_where_one_was_refused(self) -> None:
        export, played = started()
        ends(export, played, {"refusal": REFUSAL}, code=1, model=False)
        settle_all()
        page = text_of(client_of(make_contributor()), f"{FORM}?again={export.pk}")
        assert "The last export was refused" in page
        assert "images: 1x1x8x8 float32" in page
        assert "refused" not in text_of(
            client_of(make_contributor()), f"{FORM}?again=99999999999999999999999"
        )

    def test_is_for_contributors(self) -> None:
        version()
        assert client_of(make_viewer()).get(FORM).status_code == 403

    def test_is_not_there_for_another_workspace(self) -> None:
        version()
        other = make_person("ada", Role.OWNER, make_workspace("other"))
        assert client_of(other).get(FORM).status_code == 404
        assert client_of(other).get(PART).status_code == 404
        assert api_client(make_contributor()).get(API.replace("digits", "nope")).status_code == 404


class TestVersionPage:
    def test_shows_the_differences_and_leads_to_the_version_made(self) -> None:
        export, played = started()
        assert "Preparing" in text_of(client_of(make_viewer()), PART) or "Running" in text_of(
            client_of(make_viewer()), PART
        )
        ends(export, played, FOUND)
        settle_all()
        page = text_of(client_of(make_viewer()), PART)
        for words in (
            "Exported",
            "version 2",
            "2.9e-8",
            "4.5e-5",
            "random, batch = 3",
            "images: batch × 1 × 8 × 8 float",
        ):
            assert words in page, words

    def test_equal_outputs_differ_by_0_and_the_largest_difference_is_infinite(self) -> None:
        export, played = started()
        (difference,) = FOUND["differences"]
        sizes = {"max_absolute": 0, "max_relative": float("inf")}
        ends(export, played, {**FOUND, "differences": [difference | sizes]})
        settle_all()
        page = text_of(client_of(make_viewer()), PART)
        for cell in ("0", "infinite"):
            assert f'<td class="th-num">{cell}</td>' in page

    def test_the_version_made_says_what_it_was_compared_with(self) -> None:
        export, played = started()
        ends(export, played, FOUND)
        settle_all()
        page = text_of(client_of(make_viewer()), PART.replace("/1/", "/2/"))
        assert "ONNX, compared with PyTorch" in page
        assert "/models/digits/versions/1/" in page
        assert "Exports to ONNX" not in page

    def test_shows_why_it_was_refused_and_offers_contributors_another_try(self) -> None:
        export, played = started()
        ends(export, played, {"refusal": REFUSAL}, code=1, model=False)
        settle_all()
        assert REFUSAL.replace("'", "&#x27;") in text_of(client_of(make_viewer()), PART)
        assert "Try again" not in text_of(client_of(make_viewer()), PART)
        assert f"?again={export.pk}" in text_of(client_of(make_contributor()), PART)

    def test_a_version_without_a_pytorch_file_offers_no_export(self) -> None:
        version("notes.txt", path="saved/notes.txt")
        assert "Export to ONNX" not in text_of(client_of(make_contributor()), PART)


class TestApi:
    def test_starts_and_lists(self) -> None:
        version()
        node()
        client = api_client(make_contributor())
        answer = client.post(API, {"file": "model.pt", "inputs": ["1x4"]}, content_type="application/json")
        assert answer.status_code == 201, answer.content
        told: list[dict[str, Any]] = client.get(API).json()
        assert [(item["state"], item["version"], item["options"]["inputs"]) for item in told] == [
            ("waiting", None, ["1x4"])
        ]

    def test_names_the_field_of_what_is_wrong(self) -> None:
        version()
        answer = api_client(make_contributor()).post(
            API, {"file": "model.pt"}, content_type="application/json"
        )
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["field"] == "inputs"

    def test_viewers_read_and_do_not_start(self) -> None:
        version()
        client = api_client(make_viewer())
        assert client.get(API).status_code == 200
        assert (
            client.post(
                API, {"file": "model.pt", "inputs": ["1x4"]}, content_type="application/json"
            ).status_code
            == 403
        )
