"""Runs whose outputs go to a datastore: what is refused, what nodes are told, and what they report."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync

from clusters.enrolment import node_tokens
from datastores import changes
from jobs.models import OutputFolder, Run, StoredOutput
from jobs.node_api import run_secrets
from jobs.scheduling.run_preview import preview
from jobs.stored_outputs import recording
from jobs.stored_outputs.folders import list_output_stores
from tests.datastores.test_datastores import able
from tests.jobs.builders import Played, launched, processes, running, spec
from tests.jobs.raw import bearing, opened
from tests.people import make_owner, principal_of
from trainhub_launch.data.outputs import StoreFolder
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import OUTPUT_STORES
from trainhub_launch.report import OutputFile
from workspaces.access import Principal
from workspaces.secrets import store

pytestmark = pytest.mark.django_db
OUTPUTS: dict[str, str] = {"datastore": "results", "path": "birds"}
BUCKET = {"bucket": "all", "path": "kept", "access_key_id": "AKIA", "secret": "s3-key"}
HASHES = ["a" * 64, "b" * 64]


@pytest.fixture
def who() -> Principal:
    owner = principal_of(make_owner())
    store.put(owner, "s3-key", "the-secret-part", store.WORKSPACE)
    return owner


@pytest.fixture
def results(who: Principal) -> None:
    changes.create(who, "results", "s3", BUCKET)


def file(path: str, number: int = 0) -> OutputFile:
    return OutputFile(path, 5, HASHES[number])


def part(run: Run, rank: int = 0) -> Any:
    return run.attempts.get().parts.select_related("attempt", "node").get(node_rank=rank)


def listed() -> dict[str, tuple[str, str]]:
    return {row.path: (row.key, row.sha256) for row in StoredOutput.objects.all()}


class TestOrder:
    def test_names_a_folder_of_its_own_and_no_credentials(self, who: Principal, results: None) -> None:
        alpha = able("alpha", OUTPUT_STORES)
        run = launched(who, outputs=OUTPUTS)
        order = alpha.claim(run)
        assert order.outputs is not None
        path = f"kept/birds/{run.pk}/attempt_1"
        assert (order.outputs.path, order.outputs.secret_key) == (path, "datastore:s3-key")
        assert "the-secret-part" not in str(order.to_json())
        assert StoreFolder.from_json(order.to_json()["outputs"]) == order.outputs
        assert OutputFolder.objects.get().place == f"s3://all/{path}"
        values = run_secrets.take(alpha.node, run.pk, 1, alpha.nonce)
        assert values == {"datastore:s3-key": "the-secret-part"}

    def test_waits_for_a_node_that_writes_there(self, who: Principal, results: None) -> None:
        able("alpha")
        run = launched(who, outputs=OUTPUTS)
        message = run.events.latest("pk").message
        assert (
            "alpha does not write outputs into datastores: upgrade its agent, or install obstore" in message
        )

    def test_keeps_its_datastore_from_being_deleted(self, who: Principal, results: None) -> None:
        able("alpha", OUTPUT_STORES)
        run = launched(who, outputs=OUTPUTS)
        datastore = who.workspace.datastores.get()
        with pytest.raises(SpecError, match=f"run {run.number}"):
            changes.delete(who, datastore)


class TestRefusals:
    @pytest.mark.parametrize(
        ("kind", "fields", "words"),
        [
            (
                "http",
                {"url": "https://files.example.org/all/"},
                "of the kind http, but only those",
            ),
            ("hub", {}, "of the kind hub, but only those"),
            (
                "s3",
                {"bucket": "all", "sign_in": "none"},
                "has no credentials, without which nothing can be written",
            ),
        ],
    )
    def test_name_the_remedy(self, who: Principal, kind: str, fields: dict[str, str], words: str) -> None:
        changes.create(who, "results", kind, fields)
        with pytest.raises(SpecError) as raised:
            launched(who, outputs=OUTPUTS)
        assert raised.value.field == "outputs.datastore"
        assert words in raised.value.message
        assert list_output_stores(who.workspace) == []
        assert not Run.objects.exists()

    def test_name_the_datastores_that_there_are(self, who: Principal, results: None) -> None:
        with pytest.raises(SpecError, match="there is no datastore 'other'"):
            launched(who, outputs={"datastore": "other"})
        assert list_output_stores(who.workspace) == ["results"]

    @pytest.mark.parametrize(("rights", "is_refused"), [("rl", True), ("rcwl", False)])
    def test_a_signature_must_permit_to_write(self, who: Principal, rights: str, is_refused: bool) -> None:
        store.put(who, "sas", f"sv=1&sp={rights}&sig=abc", store.WORKSPACE)
        fields = {"account": "team", "container": "all", "secret": "sas"}
        changes.create(who, "results", "azure_blob", fields)
        findings = preview(spec(who, outputs=OUTPUTS), who).findings
        errors = [item for item in findings if item.field == "outputs.datastore"]
        assert [item.level for item in errors] == ["error"] * is_refused


class TestRecords:
    def test_are_replaced_and_refused_by_their_paths(self, who: Principal, results: None) -> None:
        able("alpha", OUTPUT_STORES)
        run = launched(who, outputs=OUTPUTS)
        recording.record_stored(part(run), [file("model.pt"), file("../up"), file("a/b.txt")])
        recording.record_stored(part(run), [file("model.pt", 1)])
        assert listed() == {"model.pt": ("model.pt", HASHES[1]), "a/b.txt": ("a/b.txt", HASHES[0])}
        row = StoredOutput.objects.get(path="model.pt")
        assert row.full_path == f"kept/birds/{run.pk}/attempt_1/model.pt"
        (warning,) = run.attempts.get().warnings
        assert "../up' is not among the outputs: " in warning

    @pytest.mark.parametrize("order", [(0, 1), (1, 0), (1, 0, 1)])
    def test_of_two_nodes_are_kept_apart_in_any_order(
        self, who: Principal, results: None, order: tuple[int, ...]
    ) -> None:
        for name in ("alpha", "beta"):
            able(name, OUTPUT_STORES)
        run = launched(who, outputs=OUTPUTS, distribution={**processes(2), "node_count": 2})
        for rank in order:
            files = [file("same.txt"), file("rank.txt", rank), file(f"only_{rank}.txt")]
            recording.record_stored(part(run, rank), files)
        assert {path: key for path, (key, _) in listed().items() if path != "same.txt"} == {
            "rank.txt": "node_0/rank.txt",
            "node_1/rank.txt": "node_1/rank.txt",
            "only_0.txt": "node_0/only_0.txt",
            "only_1.txt": "node_1/only_1.txt",
        }
        assert listed()["same.txt"][1] == HASHES[0]

    def test_that_are_removed_are_forgotten_on_that_node_alone(self, who: Principal, results: None) -> None:
        for name in ("alpha", "beta"):
            able(name, OUTPUT_STORES)
        run = launched(who, outputs=OUTPUTS, distribution={**processes(2), "node_count": 2})
        for rank in (0, 1):
            recording.record_stored(part(run, rank), [file("rank.txt", rank), file(f"only_{rank}.txt")])
        recording.record_stored(part(run, 1), [], ["rank.txt", "only_0.txt", "only_1.txt", "never.txt"])
        assert set(listed()) == {"rank.txt", "only_0.txt"}

    def test_are_refused_for_an_attempt_that_writes_to_the_hub(self, who: Principal) -> None:
        _, run = running(who)
        with pytest.raises(recording.NoFolder):
            recording.record_stored(part(run), [file("model.pt")])
        assert not StoredOutput.objects.exists()


class TestRoute:
    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"files": [{"path": "a.txt", "size": 5, "sha256": "a" * 64}]}, 204),
            ({"files": [{"path": "a.txt", "size": -1, "sha256": "a" * 64}]}, 400),
            ({"files": [{"path": "a.txt", "size": 5, "sha256": "A" * 64}]}, 400),
            ({"files": [{"path": ["a.txt"], "size": 5, "sha256": "a" * 64}]}, 400),
            ({"files": [{"path": "a.txt", "size": 5, "sha256": "a" * 64}] * 501}, 400),
            ({"files": [{"path": "a.txt", "size": 5, "sha256": "a" * 64}], "removed": ["b.txt"]}, 204),
            ({"files": [], "removed": "b.txt"}, 400),
            ({"files": [], "removed": [1]}, 400),
            ({}, 400),
            ([], 400),
        ],
    )
    @pytest.mark.django_db(transaction=True)
    def test_takes_lists_of_files_alone(self, who: Principal, results: None, body: Any, status: int) -> None:
        alpha = able("alpha", OUTPUT_STORES)
        run = launched(who, outputs=OUTPUTS)
        alpha.claim(run)
        assert post(alpha, run, body) == status
        assert StoredOutput.objects.count() == (1 if status == 204 else 0)

    @pytest.mark.django_db(transaction=True)
    def test_refuses_a_node_without_a_part(self, who: Principal, results: None) -> None:
        able("alpha", OUTPUT_STORES)
        run = launched(who, outputs=OUTPUTS)
        assert post(able("beta", OUTPUT_STORES), run, {"files": []}) == 409


def post(played: Played, run: Run, body: Any) -> int:
    _, token = node_tokens.enrol_node("local", played.node.name)

    async def send() -> int:
        async with opened() as client:
            address = f"/api/v1/node/stored-outputs/{run.pk}/1/"
            return (await client.post(address, json=body, headers=bearing(token))).status_code

    return async_to_sync(send)()
