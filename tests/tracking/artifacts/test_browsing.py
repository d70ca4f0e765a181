from __future__ import annotations

import hashlib
import io
import json
import zipfile

import httpx
import pytest
from django.test import Client

from jobs import outputs
from tests.pages.builders import HTMX, text_of
from tests.people import client_of, make_viewer
from tests.registry.builders import blob
from tests.tracking.artifacts.raw import (
    LoggedRunClient,
    create_model,
    logged_run_client,
    store_files,
)
from tests.tracking.builders import logged_run
from tracking.artifacts import file_views, pages
from tracking.artifacts.previews import isolation
from tracking.models import LoggedModel, LoggedModelFile
from workspaces.stored_files import blobs

FIGURE = {
    "data": [{"type": "bar", "y": [1]}],
    "layout": {"title": {"text": "</script><script>alert(1)</script>"}},
}


async def got(
    client: httpx.AsyncClient, at: LoggedRunClient, kind: str, path: str, **query: str | list[str]
) -> httpx.Response:
    address = f"/api/v1/artifacts/{kind}/{at.root}" + (f"/{path}" if path else "")
    return await client.get(address, headers=at.viewer, params=query)


@pytest.mark.django_db(transaction=True)
class TestBytes:
    async def test_an_image_is_an_image_that_runs_nothing(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(
            at.run,
            0,
            **{"box.svg": "<svg><script>alert(1)</script></svg>", "page.html": "<script>alert(1)</script>"},
        )
        answer = await got(client, at, "images", "box.svg")
        assert answer.headers["content-type"] == "image/svg+xml"
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await got(client, at, "images", "page.html")).status_code == 400
        assert (await got(client, at, "files", "page.html")).headers[
            "content-type"
        ] == "application/octet-stream"

    async def test_a_figure_is_drawn_where_it_reaches_nothing(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        images = [{"source": "https://example.com/x.png"}, {"source": "data:image/png;base64,AA"}, 5]
        remote = json.dumps({"data": [], "layout": {"images": images}})
        nan = '{"data": [{"y": [NaN]}], "layout": {}}'
        await store_files(
            at.run, 0, **{"f.json": json.dumps(FIGURE), "r.json": remote, "none.json": "{}", "nan.json": nan}
        )
        answer = await got(client, at, "figures", "f.json")
        policy = answer.headers["content-security-policy"]
        assert policy.startswith(
            "sandbox allow-scripts; default-src 'none'; script-src http://hub:8000/static/vendor/plotly-"
        )
        assert "</script><script>alert" not in answer.text
        assert "example.com" not in (await got(client, at, "figures", "r.json")).text
        assert '"y":[null]' in (await got(client, at, "figures", "nan.json")).text

    @pytest.mark.parametrize("content", [
        "{}", "no JSON", "[" * 100_000, '{"data": [{"x": ' + "[" * 500 + "]" * 500 + '}], "layout": {}}',
        ('{"data": [{"name": "\\ud800"}], '
'"layout": {}}'), '{"data": [{"x": [1' + "0" * 30 + ']}], "layout": {}}',
    ], ids=["no figure", "no JSON", "endless", "deep", "half a character", "huge number"])  # fmt: skip
    async def test_what_cannot_be_drawn_is_refused(self, client: httpx.AsyncClient, content: str) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, **{"f.json": content})
        refused = await got(client, at, "figures", "f.json")
        assert (refused.status_code, refused.headers["content-type"]) == (400, "application/problem+json")

    async def test_a_figure_beyond_the_limit_is_to_be_downloaded(
        self, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(isolation, "MAX_JSON_BYTES", 10)
        at = await logged_run_client()
        await store_files(at.run, 0, **{"f.json": json.dumps(FIGURE)})
        refusal = await got(client, at, "figures", "f.json")
        assert (refusal.status_code, "too large to be drawn here" in refusal.text) == (400, True)

    async def test_a_figure_that_takes_too_long_may_be_tried_again(
        self, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(isolation, "MAX_INLINE_BYTES", 10)
        monkeypatch.setattr(isolation, "MAX_WALL_S", 0.001)
        at = await logged_run_client()
        await store_files(at.run, 0, **{"f.json": json.dumps(FIGURE)})
        refusal = await got(client, at, "figures", "f.json")
        assert (refusal.status_code, refusal.headers["retry-after"]) == (503, "5")
        assert "parsing it takes too long at the moment. Try again" in refusal.json()["detail"]
        preview = (await got(client, at, "previews", "f.json")).json()
        assert (preview["kind"], preview["text"]) == ("text", json.dumps(FIGURE))
        assert preview["sentence"] == "Shown as plain text: parsing it takes too long at the moment."

    async def test_a_sound_is_one_by_its_name(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, **{"a.wav": "RIFF", "a.txt": "words"})
        sound = await got(client, at, "sounds", "a.wav")
        assert (sound.headers["content-type"], sound.text) == ("audio/wav", "RIFF")
        refusal = await got(client, at, "sounds", "a.txt")
        assert (refusal.status_code, "not a sound that can be played" in refusal.text) == (400, True)

    async def test_of_another_workspace_are_not_there(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, **{"a.png": "1"})
        for kind in ("files", "images", "figures", "zip"):
            answer = await client.get(f"/api/v1/artifacts/{kind}/{at.root}/a.png", headers=at.other)
            assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
            assert (await client.get(f"/api/v1/artifacts/{kind}/{at.root}/a.png")).status_code == 401


@pytest.mark.django_db(transaction=True)
class TestHtml:
    async def test_stands_in_a_frame_and_gets_plotly_from_the_hub(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        script = '<script src="https://cdn.plot.ly/plotly-2.35.2.min.js"></script>'
        await store_files(at.run, 0, **{"f.html": f"<p>a</p>{script}"})
        answer = await got(client, at, "pages", "f.html")
        assert answer.headers["content-security-policy"].startswith(
            "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' http://hub:8000/static/"
        )
        assert "<p>a</p>" in answer.text
        assert "cdn.plot.ly" not in answer.text
        assert f'src="/static/{file_views.PLOTLY}"' in answer.text

    async def test_is_no_page_of_a_tab(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, **{"f.html": "<p>a</p>", "f.txt": "a"})
        address = f"/api/v1/artifacts/pages/{at.root}/f.html"
        answer = await client.get(address, headers={**at.viewer, "Sec-Fetch-Dest": "document"})
        assert (answer.status_code, "shown in the tab Media only" in answer.text) == (400, True)
        assert "is not HTML" in (await got(client, at, "pages", "f.txt")).text

    async def test_that_is_too_large_is_a_sentence(
        self, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(file_views, "MAX_PAGE_BYTES", 5)
        at = await logged_run_client()
        await store_files(at.run, 0, **{"f.html": "<p>secret</p>"})
        answer = await got(client, at, "pages", "f.html")
        assert (answer.status_code, "secret" in answer.text) == (200, False)
        assert "is not shown here; download it" in answer.text
        assert "script-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.django_db(transaction=True)
class TestZip:
    async def test_of_too_many_names_is_refused(
        self, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(file_views, "MAX_SELECTED", 1)
        at = await logged_run_client()
        await store_files(at.run, 0, a="1", b="2")
        answer = await got(client, at, "zip", "", name=["a", "b"])
        assert (answer.status_code, "choose at most 1, or the whole folder" in answer.text) == (400, True)

    async def test_with_a_file_whose_bytes_are_lost_names_it(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, a="1", b="lost in a zip")
        blobs.path(hashlib.sha256(b"lost in a zip").hexdigest()).unlink()
        answer = await got(client, at, "zip", "")
        assert (answer.status_code, "The bytes of 'b'" in answer.text) == (404, True)
        assert "missing on the hub" in answer.text

    async def test_of_a_folder_has_its_files_below_it(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, **{"a/x": "1", "a/b/y": "2", "ab": "3"})
        assert await self.names(client, at, "a") == {"x": b"1", "b/y": b"2"}
        assert set(await self.names(client, at, "")) == {"a/x", "a/b/y", "ab"}

    async def test_of_chosen_files_and_folders_has_these_alone(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, **{"a/x": "1", "a/b/y": "2", "ab": "3", "c": "4"})
        assert set(await self.names(client, at, "", name=["a", "c"])) == {"a/x", "a/b/y", "c"}

    async def test_of_an_earlier_attempt_has_what_that_left(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client(attempt=2)
        await store_files(at.run, 1, a="first")
        await store_files(at.run, 2, a="second", b="2")
        assert await self.names(client, at, "", attempt="1") == {"a": b"first"}
        assert await self.names(client, at, "") == {"a": b"second", "b": b"2"}

    async def test_of_nothing_is_refused(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        assert (await got(client, at, "zip", "", name="nothing")).status_code == 404
        assert (await got(client, at, "zip", "", name="../up")).status_code == 400

    async def test_goes_on_where_it_broke_off(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        await store_files(at.run, 0, **{"a/x": "1" * 5000})
        whole = await got(client, at, "zip", "a")
        part = await client.get(
            whole.url, headers={**at.viewer, "Range": "bytes=3000-", "If-Range": whole.headers["etag"]}
        )
        assert (part.status_code, part.content) == (206, whole.content[3000:])

    async def names(
        self, client: httpx.AsyncClient, at: LoggedRunClient, path: str, **query: str | list[str]
    ) -> dict[str, bytes]:
        answer = await got(client, at, "zip", path, **query)
        assert answer.status_code == 200, answer.text
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    async def test_of_a_logged_model_has_its_files(self, client: httpx.AsyncClient) -> None:
        at = await logged_run_client()
        model = await create_model(at.run)
        put = f"/api/2.0/mlflow-artifacts/artifacts/{at.run.experiment_id}/models/{model.pk}/artifacts/data/w"
        await client.put(put, headers=at.contributor, content=b"w")
        answer = await client.get(
            f"/api/v1/artifacts/zip/{at.run.experiment_id}/models/{model.pk}/artifacts", headers=at.viewer
        )
        assert zipfile.ZipFile(io.BytesIO(answer.content)).namelist() == ["data/w"]


@pytest.mark.django_db
class TestPage:
    def test_shows_one_folder_folders_first(self) -> None:
        run, client = _run(**{"z/a": "1", "b": "22", "a/x": "3"})
        result = client.get(f"/runs/{run}/outputs/").context["entries"]
        assert [(entry.name, entry.files, entry.size_bytes) for entry in result] == [
            ("a", 1, 1),
            ("z", 1, 1),
            ("b", None, 2),
        ]
        inside = client.get(f"/runs/{run}/outputs/?path=z").context
        assert [word for word, _ in inside["crumbs"]] == ["Outputs", "z"]
        assert [entry.path for entry in inside["entries"]] == ["z/a"]

    def test_shows_what_a_file_holds_beside_its_folder(self) -> None:
        run, client = _run(**{"z/a.txt": "hello <b>"})
        text = text_of(client, f"/runs/{run}/outputs/?file=z/a.txt", **HTMX)
        assert "hello &lt;b&gt;" in text
        assert 'aria-current="true"' in text

    @pytest.mark.parametrize("query", ["file=nothing", "path=../x", "file=a%00", "model=m-1"])
    def test_of_what_is_not_there_is_not_there(self, query: str) -> None:
        run, client = _run(a="1")
        assert client.get(f"/runs/{run}/outputs/?{query}").status_code == 404

    def test_of_many_files_shows_some_and_the_way_to_the_next(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pages, "PAGE_SIZE", 2)
        run, client = _run(a="1", b="2", c="3")
        first = client.get(f"/runs/{run}/outputs/").context
        assert [entry.name for entry in first["entries"]] == ["a", "b"]
        assert [entry.name for entry in client.get(first["later_url"]).context["entries"]] == ["c"]

    def test_leads_to_logged_models_and_to_the_runs_that_are_part_of_it(self) -> None:
        run = logged_run()
        child = logged_run("child", parent=run)
        outputs.put_output(child, 0, "a", blob(b"1"), 1)
        model = LoggedModel.objects.create(experiment=run.experiment, run=run, name="net")
        LoggedModelFile.objects.create(model=model, path="MLmodel", size_bytes=7, sha256=blob(b"flavors"))
        client = client_of(make_viewer())
        assert f"/runs/{child.number}/outputs/" in text_of(client, f"/runs/{run.number}/outputs/")
        inside = client.get(f"/runs/{run.number}/outputs/?model={model.pk}&file=MLmodel").context
        assert inside["chosen"]["preview"].text == "flavors"
        assert client.get(f"/runs/{child.number}/outputs/?model={model.pk}").status_code == 404

    def test_of_an_earlier_attempt_shows_what_that_left_and_the_last_what_counts(self) -> None:
        run = logged_run(attempt=2)
        outputs.put_output(run, 1, "a", blob(b"first"), 5)
        outputs.put_output(run, 1, "b", blob(b"first"), 5)
        outputs.put_output(run, 2, "a", blob(b"second!"), 7)
        client = client_of(make_viewer())
        content = [
            client.get(f"/runs/{run.number}/outputs/{query}").context["entries"]
            for query in ("", "?attempt=1")
        ]
        text = [[(entry.name, entry.size_bytes, entry.attempt) for entry in entries] for entries in content]
        assert text == [[("a", 7, None), ("b", 5, 1)], [("a", 5, None), ("b", 5, None)]]


def _run(**files: str) -> tuple[int, Client]:
    run = logged_run()
    for path, content in files.items():
        outputs.put_output(run, 0, path, blob(content.encode()), len(content))
    return run.number, client_of(make_viewer())
