from __future__ import annotations

import io
import stat
import warnings
import zipfile
from typing import Any

import pytest
from django.test import Client

from clusters.models import Node
from tests.api.asking import refused, upload
from tests.jobs.builders import zipped
from tests.people import client_of, make_stranger
from trainhub_launch.frameworks import FRAMEWORKS
from trainhub_launch.spec_reader import read_spec


def packed(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        # A name that comes twice is what one of the tests wants.
        warnings.simplefilter("ignore")
        for name, content in entries:
            archive.writestr(name, content)
    return out.getvalue()


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


class TestSnapshots:
    def test_a_zip_becomes_a_snapshot_named_by_its_content(self, api: Client) -> None:
        first, second = (
            upload(api, zipped({"train.py": "print(1)", "data/x.csv": "1"}).getvalue()) for _ in range(2)
        )
        assert first.status_code == 201
        body = first.json()
        assert body == second.json()
        assert body["id"] == body["sha256"]
        assert (body["files"], body["warnings"]) == (2, [])

    def test_says_what_it_left_out(self, api: Client) -> None:
        body = upload(
            api, zipped({"train.py": "", "x.tmp": "", ".trainhubignore": "*.tmp\n"}).getvalue()
        ).json()
        assert body["warnings"] == ["1 file or folder was left out by .trainhubignore."]

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"no zip at all", "it is not a zip file, or it was cut off"),
            (packed(("train.py", b"x"))[:-5], "cut off"),
            (packed(("../evil.py", b"x")), ".."),
            (packed(("/etc/passwd", b"x")), "/etc/passwd"),
            (packed(("a\\..\\b.py", b"x")), "b.py"),
            (packed((link("out"), b"/etc/passwd")), "is a link"),
            (packed(("train.py", b"x"), ("train.py", b"y")), "train.py"),
            (packed(("bomb", b"\x00" * 64 * 2**20)), "200 times its size"),
            (packed(), "there is no file in it"),
        ],
        ids=["text", "cut", "up", "absolute", "backslash", "link", "twice", "bomb", "empty"],
    )
    def test_a_hostile_or_broken_one_is_refused_with_a_remedy(
        self, api: Client, content: bytes, words: str
    ) -> None:
        answer = upload(api, content)
        assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/problem+json")
        assert words in answer.json()["detail"]
        assert answer.json()["errors"][0]["field"].startswith("source")

    def test_needs_the_form_field_file(self, api: Client) -> None:
        refused(
            upload(api, b"x", "zip"), 400, "file", "send the source folder as a zip in the form field 'file'"
        )

    @pytest.mark.parametrize("kind", ["application/zip", "application/x-zip-compressed"])
    def test_a_zip_may_be_the_body(self, api: Client, kind: str) -> None:
        content = zipped({"train.py": "print(1)"}).getvalue()
        answer = api.post("/api/v1/snapshots/", content, kind)
        assert answer.status_code == 201, answer.content
        assert answer.json()["id"] == upload(api, content).json()["id"]

    def test_a_body_that_is_no_zip_is_refused_as_a_file_is(self, api: Client) -> None:
        answer = api.post("/api/v1/snapshots/", b"not a zip", "application/zip")
        assert answer.status_code == 400
        assert answer.json()["errors"] == upload(api, b"not a zip").json()["errors"]

    def test_a_body_has_the_same_largest_size(self, api: Client, settings: Any) -> None:
        settings.MAX_SNAPSHOT_BYTES = 1024
        answer = api.post("/api/v1/snapshots/", b"x" * 3000, "application/zip")
        refused(answer, 413, "file", "leave data out with a .trainhubignore file")

    @pytest.mark.parametrize(
        ("path", "kind"),
        [("/api/v1/snapshots/", "application/octet-stream"), ("/api/v1/runs/", "application/zip")],
    )
    def test_another_type_or_address_is_refused_with_how_to_send_it(
        self, api: Client, path: str, kind: str
    ) -> None:
        answer = api.post(path, zipped({"train.py": ""}).getvalue(), kind)
        assert answer.status_code == 415
        assert (
            "/api/v1/snapshots/ first, as a zip with Content-Type: application/zip" in answer.json()["detail"]
        )
        # Both commands of the sentence work: the tests above send the same requests.
        assert "--data-binary @code.zip" in answer.json()["detail"]
        assert "-F file=@code.zip" in answer.json()["detail"]

    def test_has_a_largest_size(self, api: Client, settings: Any) -> None:
        settings.MAX_SNAPSHOT_BYTES = 1024
        answer = upload(api, b"x" * 100_000)
        refused(answer, 413, "file", "leave data out with a .trainhubignore file")

    def test_a_viewer_and_a_stranger_cannot_send_one(self, viewer_api: Client) -> None:
        content = zipped({"train.py": ""}).getvalue()
        assert upload(viewer_api, content).status_code == 403
        assert upload(client_of(make_stranger()), content).status_code == 404


class TestEnvironments:
    def test_are_the_curated_ones_and_what_the_nodes_have(self, viewer_api: Client, node: Node) -> None:
        found = viewer_api.get("/api/v1/environments/").json()
        by_key = {(item["name"], item["version"]): item for item in found}
        assert "torch==2.13.0" in by_key["TrainHub-PyTorch-2.13", "1"]["requirements"]
        assert by_key["system", ""]["nodes"] == by_key["system", "3.11.7"]["nodes"] == ["alpha"]


class TestExamples:
    def test_each_carries_a_spec_that_is_one(self, viewer_api: Client) -> None:
        found = viewer_api.get("/api/v1/examples/").json()
        assert {item["framework"] for item in found} == set(FRAMEWORKS)
        for item in found:
            assert read_spec(item["spec"]).source.type == "example"
            assert "folder" not in item


@pytest.mark.parametrize("path", ["environments/", "examples/", "schema/"])
def test_nothing_is_told_to_nobody(db: None, path: str) -> None:
    assert Client().get(f"/api/v1/{path}").status_code == 401
