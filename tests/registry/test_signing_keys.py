"""The key that signs certificates, and the command that lists, replaces and uses it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings as hub_settings
from django.core.management import CommandError, call_command

from jobs.models import Run
from registry.certificates import keys
from registry.errors import RegistryError
from registry.models import ModelVersion, RegisteredModel
from registry.registration import register
from registry.verifying.trainhub_verify import UNREADABLE
from tests.people import client_of, make_contributor, make_owner, make_viewer, make_workspace, token_of
from tests.registry.builders import run_with
from tests.registry.downloads import folder_of, verified
from tests.registry.test_downloads import get

pytestmark = pytest.mark.django_db(transaction=True)
OTHER_KIND = (
    X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
)


@pytest.fixture(autouse=True)
def _own_keys(settings: Any, tmp_path: Path) -> None:
    """Each test is an installation of its own; its blobs too."""
    settings.DATA_DIR = tmp_path / "data"


def registered() -> ModelVersion:
    run = Run.objects.first() or run_with("saved/w.pt")
    return register(make_workspace(), "digits", run, "saved", make_contributor())


def damage(content: str = "no key") -> None:
    keys.current()
    (Path(hub_settings.DATA_DIR) / "keys" / keys.PRIVATE).write_text(content)


class TestKeys:
    def test_is_made_once_and_is_for_this_account_alone(self) -> None:
        first = keys.current().fingerprint
        path = Path(hub_settings.DATA_DIR) / "keys"
        assert keys.current().fingerprint == first
        assert [oct(item.stat().st_mode & 0o777) for item in (path, path / keys.PRIVATE)] == [
            "0o700",
            "0o600",
        ]

    def test_of_several_that_make_it_at_once_one_holds(self) -> None:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: keys.current().fingerprint, range(16)))
        assert len(set(found)) == 1
        assert [key.fingerprint for key in keys.public_keys()] == found[:1]

    def test_what_the_old_key_signed_stays_good(self, tmp_path: Path) -> None:
        before = registered()
        old = keys.current().fingerprint
        call_command("model", "rotate-key")
        after = registered()
        assert [key.is_current for key in keys.public_keys()] == [True, False]
        assert verified(folder_of(before, tmp_path / "before")).key == old
        assert verified(folder_of(after, tmp_path / "after")).key == keys.current().fingerprint != old

    @pytest.mark.parametrize("content", ["no key", OTHER_KIND], ids=["text", "other kind"])
    def test_a_damaged_one_is_told_and_nothing_is_half_registered(self, content: str) -> None:
        damage(content)
        with pytest.raises(RegistryError, match="restore it from a backup") as caught:
            registered()
        assert caught.value.field == "certificate"
        assert not RegisteredModel.objects.exists()

    def test_a_damaged_one_is_a_note_on_the_settings_page(self) -> None:
        damage()
        response = client_of(make_owner()).get("/settings/")
        assert response.status_code == 200
        assert "cannot be read; restore it from a backup" in response.content.decode()

    async def test_without_it_the_verifier_is_refused_with_the_remedy(self) -> None:
        def damage_it() -> str:
            damage()
            return token_of(make_viewer())

        token = await sync_to_async(damage_it)()
        response = await get("../../../verifier/trainhub_verify.py", token)
        assert response.status_code == 500
        assert "restore it from a backup" in response.json()["detail"]

    async def test_without_the_old_public_one_its_papers_are_refused_with_the_remedy(self) -> None:
        def register_and_lose() -> str:
            registered()
            (key,) = (Path(hub_settings.DATA_DIR) / "keys" / keys.PUBLIC).iterdir()
            keys.rotate()
            key.unlink()
            return token_of(make_viewer())

        token = await sync_to_async(register_and_lose)()
        for address in ("1/signature", "1/zip"):
            response = await get(address, token)
            assert response.status_code == 500
            assert "lacks the key" in response.json()["detail"]


class TestCommand:
    """The verbs of `manage.py model`, with their exit statuses."""

    def test_lists_the_key_that_signs_and_those_that_did(self, capsys: pytest.CaptureFixture[str]) -> None:
        old = keys.current().fingerprint
        new = keys.rotate()
        call_command("model", "keys")
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == f"{new.fingerprint} signs now"
        assert new.pem.splitlines()[1] in lines
        assert next(line for line in lines if line.startswith(old)).endswith(", retired")

    @pytest.mark.parametrize("verb", ["keys", "rotate-key"])
    def test_a_damaged_key_is_a_sentence_and_not_a_traceback(self, verb: str) -> None:
        damage()
        with pytest.raises(CommandError, match="restore it from a backup") as refused:
            call_command("model", verb)
        assert refused.value.returncode == UNREADABLE

    def test_what_was_changed_exits_with_its_status(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = folder_of(registered(), tmp_path / "model")
        call_command("model", "verify", folder)
        assert "VERIFIED: digits version 1" in capsys.readouterr().out
        (folder / "w.pt").write_bytes(b"changed")
        with pytest.raises(SystemExit) as ended:
            call_command("model", "verify", folder)
        assert ended.value.code == 1
        assert "w.pt differs" in capsys.readouterr().out

    def test_what_cannot_be_read_is_a_sentence(self, tmp_path: Path) -> None:
        folder = folder_of(registered(), tmp_path / "model")
        for arguments in ((tmp_path / "nothing",), (folder, "--key", "no fingerprint")):
            with pytest.raises(CommandError, match="Cannot be verified: ") as refused:
                call_command("model", "verify", *map(str, arguments))
            assert refused.value.returncode == UNREADABLE
