from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from jobs import outputs
from jobs.models import Run, RunTag
from registry.certificates import issuance, keys
from registry.certificates.facts import plain
from registry.models import ModelVersion
from registry.registration import register
from registry.verifying import trainhub_verify
from registry.verifying.trainhub_verify import (
    CERTIFICATE,
    SIGNATURE,
    UNPROVEN,
    UnreadableInput,
    canonical_json,
    verify,
)
from tests.jobs.builders import running, snapshot
from tests.people import make_contributor, make_workspace, principal_of
from tests.registry.builders import add_output, blob, run_with
from tests.registry.downloads import folder_of, verified, zip_of
from tracking.metrics.point_writer import Point, append
from tracking.models import Param, RunInput
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_keys(settings: Any, tmp_path: Path) -> None:
    """Each test is an installation of its own; its blobs too."""
    settings.DATA_DIR = tmp_path / "data"


def registered(run: Run | None = None) -> ModelVersion:
    run = run or Run.objects.first() or run_with("saved/w.pt", "saved/deep/c.json")
    return register(make_workspace(), "digits", run, "saved", make_contributor())


def findings(path: Path) -> list[tuple[str, str]]:
    return [(finding.what, finding.subject) for finding in verified(path).findings]


class TestManifest:
    def test_names_the_version_its_files_and_who_made_it(self) -> None:
        version = registered()
        told = issuance.manifest_of(version)
        assert (told["model"]["name"], told["model"]["number"], told["model"]["registered_by"]) == (
            "digits",
            1,
            "carl",
        )
        assert [(item["path"], item["size_bytes"]) for item in told["files"]] == [
            ("deep/c.json", 17),
            ("w.pt", 10),
        ]
        assert told["files"][1]["sha256"] == blob(b"saved/w.pt")
        assert (told["issuer"]["key"], told["issued_later"]) == (keys.current().fingerprint, False)

    def test_tells_the_run_its_params_metrics_inputs_and_commit(self) -> None:
        run = run_with("saved/w.pt")
        Param.objects.create(run=run, experiment=run.experiment, key="lr", value="0.1")
        RunTag.objects.create(run=run, experiment=run.experiment, key="mlflow.source.git.commit", value="abc")
        RunInput.objects.create(
            run=run, name="train", digest="d1", source_type="http", source="https://example.org"
        )
        append(run.pk, run.experiment_id, [Point("loss", 0.1 + 0.2, 3, 1)])
        told = issuance.manifest_of(registered(run=run))["origin"]["run"]
        assert (told["number"], told["params"], told["git"]) == (41, {"lr": "0.1"}, {"commit": "abc"})
        assert told["metrics"] == {"loss": {"value": "0.30000000000000004", "step": 3}}
        assert told["inputs"][0]["digest"] == "d1"

    def test_of_variables_only_the_names_leave_the_hub(self) -> None:
        run = run_with("saved/w.pt")
        run.spec = {"environment_variables": {"API_KEY": "very secret"}}
        run.save()
        version = registered(run=run)
        assert "very secret" not in version.certificate
        assert issuance.manifest_of(version)["origin"]["run"]["spec"] == {
            "environment_variables": ["API_KEY"]
        }

    @pytest.mark.parametrize("login", ["ghp_secret", "carl:secret", "x-access-token:secret@x"])
    def test_a_repositorys_password_stays_on_the_hub(self, login: str) -> None:
        run = run_with("saved/model.pt")
        for key, value in (("commit", "abc"), ("repoURL", f"https://{login}@git.example/a/b.git")):
            RunTag.objects.create(
                run=run, experiment=run.experiment, key=f"mlflow.source.git.{key}", value=value
            )
        told = issuance.manifest_of(registered(run))
        assert told is not None
        assert told["origin"]["run"]["git"]["repository"] == "https://git.example/a/b.git"
        assert "secret" not in str(told)

    def test_tells_the_machines_and_the_environment_as_far_as_they_are_still_known(self) -> None:
        _, run = running(principal_of(make_contributor()))
        attempt = run.attempts.get()
        attempt.placement[0]["gpus"] = ["GPU-gone"]
        attempt.save(update_fields=["placement"])
        run.spec["environment"] = {"name": "of-an-earlier-version", "version": "1"}
        run.save()
        add_output(run, "saved/w.pt")
        origin = issuance.manifest_of(registered(run))["origin"]["run"]
        assert origin["environment"] == {"name": "of-an-earlier-version", "version": "1"}
        assert [(node["name"], node["gpus"]) for node in origin["nodes"]] == [
            ("alpha", [{"uuid": "GPU-gone"}])
        ]

    @pytest.mark.parametrize("at", [0, 40, -30], ids=["start", "content", "end"])
    def test_a_source_that_is_damaged_on_the_disk_is_listed_without_hashes(self, at: int) -> None:
        run = run_with("saved/w.pt")
        source = snapshot(principal_of(make_contributor()), {"train.py": "print('hello')\n" * 50})
        run.spec = {"source": {"type": "snapshot", "id": source.sha256}, "script": "train.py"}
        run.save()
        file = blobs.path(source.sha256)
        data = bytearray(file.read_bytes())
        data[at : at + 4 or None] = b"\xff" * 4
        file.chmod(0o600)
        file.write_bytes(data)
        origin = issuance.manifest_of(registered(run))["origin"]["run"]
        assert origin["snapshot"]["files"] == [{"path": "train.py", "size_bytes": 750}]

    def test_has_one_form_only(self) -> None:
        version = registered()
        assert canonical_json(json.loads(version.certificate)) == version.certificate.encode()
        assert plain({"b": 0.1, "a": [float("nan"), 2**60, True, None]}) == {
            "b": "0.1",
            "a": ["nan", str(2**60), True, None],
        }

    def test_is_never_written_anew(self) -> None:
        version = registered()
        before = version.certificate
        issuance.issue(version, list(version.files.all()), {})
        assert version.certificate == before


class TestVerifying:
    def test_what_was_downloaded_is_what_was_registered(self, tmp_path: Path) -> None:
        version = registered()
        assert verified(folder_of(version, tmp_path / "got")).status == 0
        assert verified(zip_of(version, tmp_path / "got.zip")).status == 0

    def test_a_changed_byte_is_found_and_its_file_named(self, tmp_path: Path) -> None:
        folder = folder_of(registered(), tmp_path / "got")
        (folder / "w.pt").write_bytes(b"saved/w.pT")
        (finding,) = verified(folder).findings
        assert (finding.what, finding.subject) == ("changed", "w.pt")
        assert "SHA-256" in finding.sentence

    def test_a_changed_byte_in_a_zip_too(self, tmp_path: Path) -> None:
        path = zip_of(registered(), tmp_path / "got.zip")
        path.write_bytes(path.read_bytes().replace(b"saved/deep/c.json", b"saved/deep/c.jsoN"))
        assert findings(path) == [("changed", "deep/c.json")]

    def test_what_is_missing_or_extra_is_named(self, tmp_path: Path) -> None:
        folder = folder_of(registered(), tmp_path / "got")
        (folder / "w.pt").rename(folder / "x.pt")
        assert findings(folder) == [("extra", "x.pt"), ("missing", "w.pt")]

    def test_a_link_is_no_file(self, tmp_path: Path) -> None:
        folder = folder_of(registered(), tmp_path / "got")
        (folder / "w.pt").rename(tmp_path / "elsewhere")
        (folder / "w.pt").symlink_to(tmp_path / "elsewhere")
        assert findings(folder) == [("changed", "w.pt")]

    def test_a_changed_certificate(self, tmp_path: Path) -> None:
        folder = folder_of(registered(), tmp_path / "got")
        text = (folder / CERTIFICATE).read_text()
        (folder / CERTIFICATE).write_text(text.replace('"carl"', '"mary"'))
        assert findings(folder) == [("certificate", CERTIFICATE)]

    def test_a_certificate_and_files_that_were_both_changed(self, tmp_path: Path) -> None:
        folder = folder_of(registered(), tmp_path / "got")
        text = (folder / CERTIFICATE).read_text()
        (folder / CERTIFICATE).write_text(text.replace(blob(b"saved/w.pt"), blob(b"saved/w.pT")))
        (folder / "w.pt").write_bytes(b"saved/w.pT")
        assert findings(folder) == [("certificate", CERTIFICATE)]

    def test_the_signature_of_another_version(self, tmp_path: Path) -> None:
        first, second = registered(), registered()
        folder = folder_of(first, tmp_path / "got")
        (folder / SIGNATURE).write_bytes(issuance.documents(second)[SIGNATURE])
        assert findings(folder) == [("certificate", CERTIFICATE)]

    def test_a_changed_signature(self, tmp_path: Path) -> None:
        folder = folder_of(registered(), tmp_path / "got")
        told = json.loads((folder / SIGNATURE).read_text())
        # Another first byte, whichever it is: one signature in 256 begins with any given one.
        first = int(told["signature"][:2], 16) ^ 1
        told["signature"] = f"{first:02x}{told['signature'][2:]}"
        (folder / SIGNATURE).write_text(json.dumps(told))
        assert findings(folder) == [("signature", SIGNATURE)]

    def test_another_key_that_signed_it_all_anew(self, tmp_path: Path, settings: Any) -> None:
        version = registered()
        folder = folder_of(version, tmp_path / "got")
        trusted = keys.current().fingerprint
        settings.DATA_DIR = tmp_path / "another hub"
        other = keys.current()
        data = (folder / CERTIFICATE).read_text().replace(trusted, other.fingerprint).encode()
        (folder / CERTIFICATE).write_bytes(data)
        told = json.loads((folder / SIGNATURE).read_text()) | {
            "public_key": other.pem,
            "signature": other.sign(data).hex(),
        }
        (folder / SIGNATURE).write_text(json.dumps(told))
        report = verify(folder, [trusted])
        assert [finding.what for finding in report.findings] == ["key"]
        assert other.fingerprint in report.findings[0].sentence

    def test_without_a_key_to_trust_it_says_only_that_all_agrees(self, tmp_path: Path) -> None:
        report = verify(folder_of(registered(), tmp_path / "got"), [])
        assert (report.status, report.key) == (UNPROVEN, keys.current().fingerprint)

    @pytest.mark.parametrize("missing", [CERTIFICATE, SIGNATURE])
    def test_without_its_papers_nothing_can_be_said(self, tmp_path: Path, missing: str) -> None:
        folder = folder_of(registered(), tmp_path / "got")
        (folder / missing).unlink()
        with pytest.raises(UnreadableInput, match=re.escape(missing)):
            verified(folder)

    def test_what_mlflows_client_adds_does_no_harm(self, tmp_path: Path) -> None:
        folder = folder_of(registered(), tmp_path / "got")
        (folder / "registered_model_meta").write_text("model_name: digits")
        report = verified(folder)
        assert (report.status, len(report.notes)) == (0, 1)


class TestScript:
    def run(self, script: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", str(script), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=script.parent)

    def test_stands_alone_and_tells_by_its_exit_status(self, tmp_path: Path) -> None:
        script = tmp_path / "alone" / "trainhub_verify.py"
        script.parent.mkdir()
        script.write_bytes(Path(trainhub_verify.__file__).read_bytes())
        folder, key = folder_of(registered(), tmp_path / "got"), keys.current()
        assert self.run(script, folder).returncode == UNPROVEN
        done = self.run(script, folder, "--key", key.fingerprint.upper())
        assert (done.returncode, done.stdout.splitlines()[-1][:9]) == (0, "VERIFIED:")
        (script.parent / "key.pem").write_text(key.pem)
        assert self.run(script, folder, "--key", "key.pem").returncode == 0
        assert self.run(script, folder, "--key", "ab" * 32).returncode == 1
        assert self.run(script, tmp_path / "nothing").returncode == 2
        (folder / "w.pt").write_bytes(b"saved/w.pT")
        done = self.run(script, folder, "--key", key.fingerprint)
        assert (done.returncode, "w.pt differs" in done.stdout) == (1, True)


class TestIssuedLater:
    def test_versions_of_before_get_one_that_says_so(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        version = registered()
        ModelVersion.objects.update(certificate="", signature="")
        ModelVersion.objects.create(model=version.model, number=2, kind="logged_model")
        call_command("model", "certify")
        # The second one has no files yet, and so nothing to certify.
        assert capsys.readouterr().out == "1 certificate issued.\n"
        version.refresh_from_db()
        assert issuance.manifest_of(version)["issued_later"] is True
        assert verified(folder_of(version, tmp_path / "got")).status == 0

    def test_or_when_they_are_downloaded(self, tmp_path: Path) -> None:
        version = registered()
        ModelVersion.objects.update(certificate="", signature="")
        version.refresh_from_db()
        assert verified(folder_of(version, tmp_path / "got")).status == 0

    def test_what_its_run_left_meanwhile_does_not_matter(self, tmp_path: Path) -> None:
        version = registered()
        assert version.run is not None
        outputs.put_output(version.run, 1, "saved/w.pt", blob(b"other"), 5)
        version.run.delete()
        version.refresh_from_db()
        assert verified(folder_of(version, tmp_path / "got")).status == 0
