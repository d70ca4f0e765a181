"""Rows "Paths", "Zips" and "Objects by id" of the review's table of what was tried and held: they are to hold
further."""

from __future__ import annotations

import io
import secrets
import stat
import time
import unicodedata
import zipfile
from contextlib import suppress

import httpx
import pytest
from asgiref.sync import sync_to_async

from jobs.sources import snapshots
from jobs.sources.source_files import SnapshotError
from registry.errors import RegistryError
from registry.registration import register
from registry.sources import SourceRequest, resolve
from tests.jobs.builders import snapshot, zipped
from tests.jobs.raw import other_token
from tests.people import make_contributor, make_viewer, make_workspace, principal_of, token_of
from tests.registry.builders import run_with
from tracking.callers import Caller
from trainhub.asgi import application
from workspaces import process_caches
from workspaces.access import Principal
from workspaces.states import Role
from workspaces.stored_files import blobs

ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
LEAD_ELSEWHERE = [
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/etc/passwd",
    "..%252f..%252fetc%252fpasswd",
    "%252e%252e%252fetc",
    "%2fetc%2fpasswd",
    "//etc/passwd",
    "..%5c..%5cwindows",
    "a%5c..%5c..%5cb",
    "a%00.txt",
    "C:%5cboot.ini",
    "C:/boot.ini",
    "....//....//etc/passwd",
    "a/%2e%2e/%2e%2e/%2e%2e/secret-key",
    "%c0%ae%c0%ae/etc",
]


@sync_to_async
def prepared() -> tuple[list[str], str]:
    """The addresses below which files are served, and the token of who may read them."""
    process_caches.clear_all()
    run = run_with("saved/a.pt")
    register(run.workspace, "digits", run, "saved", make_contributor())
    root = f"{run.experiment_id}/{run.pk}/artifacts"
    below = [
        f"/api/v1/runs/{run.pk}/outputs",
        f"/api/v1/runs/{run.pk}/logs",
        f"{ARTIFACTS}/{root}",
        f"/api/v1/artifacts/files/{root}",
        f"/api/v1/artifacts/images/{root}",
        f"/api/v1/artifacts/figures/{root}",
        f"/api/v1/artifacts/zip/{root}",
        "/api/v1/models/digits/versions/1/files",
        f"{ARTIFACTS}/models/digits/1",
        "/api/v1/snapshots",
        "/api/v1/uploads",
        "/api/v1/node/wheel",
        "/sdk",
        "/static",
    ]
    return below, token_of(make_viewer())


async def ask(address: str, token: str, method: str = "GET") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(application), base_url="http://testserver"
    ) as client:
        return await client.send(
            client.build_request(method, httpx.URL(f"http://testserver{address}"), headers=headers)
        )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", LEAD_ELSEWHERE)
async def test_a_path_that_leads_elsewhere_gives_nothing_anywhere(path: str) -> None:
    below, token = await prepared()
    for address in below:
        answer = await ask(f"{address}/{path}", token, "HEAD" if address.endswith("uploads") else "GET")
        # A log of which nothing has come is empty, whatever it is called.
        is_empty = address.endswith("/logs") and answer.content == b""
        assert answer.status_code in (400, 404) or is_empty, (address, answer.status_code)


@pytest.fixture
def who() -> Principal:
    return principal_of(make_contributor())


def refused(file: io.BytesIO, who: Principal) -> str:
    with pytest.raises(SnapshotError) as error:
        snapshots.from_zip(file, who)
    return error.value.message


@pytest.mark.django_db
class TestZips:
    def test_a_setuid_bit_is_dropped(self, who: Principal) -> None:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            info = zipfile.ZipInfo("run.sh")
            info.external_attr = (stat.S_IFREG | 0o6777) << 16
            archive.writestr(info, "#!/bin/sh\n")
        out.seek(0)
        with zipfile.ZipFile(blobs.path(snapshots.from_zip(out, who).sha256)) as archive:
            assert archive.infolist()[0].external_attr >> 16 == stat.S_IFREG | 0o755

    def test_names_that_differ_by_case_or_unicode_form_are_kept_apart(self, who: Principal) -> None:
        names = ["a.py", "A.py", unicodedata.normalize("NFC", "ü.py"), unicodedata.normalize("NFD", "ü.py")]
        assert sorted(snapshot(who, dict.fromkeys(names, "1")).paths) == sorted(names)

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("d/" * 600 + "x", "too long"),
            ("x" * 256, "too long"),
            ("a\nb", "cannot be shown"),
            ("a\x1b[2J", "cannot be shown"),
            ("..\\x", "backslash"),
            ("C:x", "absolute"),
            ("/x", "absolute"),
            ("a/../../x", "leads out"),
        ],
    )
    def test_a_hostile_name_is_refused(self, who: Principal, name: str, reason: str) -> None:
        assert reason in refused(zipped({name: "1"}), who)

    def test_twenty_thousand_and_one_files_are_refused_at_once(self, who: Principal) -> None:
        packed = zipped(dict.fromkeys((f"{number}" for number in range(20_001)), ""))
        begun = time.process_time()
        assert "20001 files" in refused(packed, who)
        assert time.process_time() - begun < 2

    @pytest.mark.parametrize("pattern", ["*" * 50 + "x", "a*" * 40, "**/" * 40 + "x", "[a-z]*" * 40])
    def test_an_ignore_file_of_many_stars_is_refused_or_quick(self, who: Principal, pattern: str) -> None:
        begun = time.process_time()
        with suppress(SnapshotError):
            snapshot(who, {".trainhubignore": pattern, "a" * 200: "1", "train.py": "1"})
        assert time.process_time() - begun < 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    "source", ["dbfs:/x", "ftp://h/x", "file:///etc/passwd", "http://127.0.0.1:22/x", "s3://b/x"]
)
def test_a_models_source_elsewhere_is_refused_and_not_fetched(source: str) -> None:
    user = make_contributor()
    with pytest.raises(RegistryError):
        resolve(Caller(make_workspace(), Role.CONTRIBUTOR, user), SourceRequest(source))


@pytest.mark.django_db(transaction=True)
async def test_files_of_another_workspace_are_not_found_by_their_ids() -> None:
    below, _ = await prepared()
    other = await sync_to_async(other_token)()
    addresses = [f"{address}/saved/a.pt" for address in below[:9]] + [f"{below[9]}/{secrets.token_hex(32)}"]
    assert {(await ask(address, other)).status_code for address in addresses} == {404}
