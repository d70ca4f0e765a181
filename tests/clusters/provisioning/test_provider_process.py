"""A provider's program runs only if other accounts cannot change it, and within limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_django import Settings

from clusters.provisioning import providers
from clusters.provisioning.provider_process import MAX_ANSWER_BYTES, call
from clusters.provisioning.providers import ProviderError
from tests.clusters.provisioning.builders import Provider
from tests.hub import eventually

QUESTION = {"name": "n-1", "join_token": "thj_secret"}


def answer(provider: Provider, text: str, seconds: float = 20) -> object:
    provider.script("provision", text)
    return call(
        providers.find("cloud").program("provision"), QUESTION, seconds=seconds, secrets=("thj_secret",)
    )


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class TestFind:
    def test_names_the_folders(self, provider: Provider) -> None:
        assert providers.names() == ["cloud"]
        assert providers.find("cloud").folder == provider.folder

    def test_without_the_setting_there_are_none(self, settings: Settings) -> None:
        settings.NODE_PROVIDERS = ""
        assert providers.names() == []
        with pytest.raises(ProviderError, match="NODE_PROVIDERS"):
            providers.find("cloud")

    @pytest.mark.parametrize("name", ["other", "..", "cloud/../cloud", ""])
    def test_another_name_is_refused_with_those_that_there_are(self, provider: Provider, name: str) -> None:
        with pytest.raises(ProviderError, match="there are: cloud"):
            providers.find(name)

    def test_a_program_that_others_may_change_is_refused(self, provider: Provider) -> None:
        (provider.folder / "release").chmod(0o775)
        with pytest.raises(ProviderError, match=r"release can be changed by other accounts; .*chmod go-w"):
            providers.find("cloud")

    def test_a_folder_that_others_may_change_is_refused(self, provider: Provider) -> None:
        provider.folder.chmod(0o757)
        with pytest.raises(ProviderError, match="can be changed by other accounts"):
            providers.find("cloud")

    def test_a_link_is_refused(self, provider: Provider) -> None:
        (provider.folder / "release").unlink()
        (provider.folder / "release").symlink_to("/bin/true")
        with pytest.raises(ProviderError, match="is a link"):
            providers.find("cloud")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
    def test_a_program_of_another_account_is_refused(self, provider: Provider) -> None:
        os.chown(provider.folder / "provision", 12345, 12345)
        with pytest.raises(ProviderError, match="belongs to another account"):
            providers.find("cloud")

    def test_a_missing_or_idle_program_is_named(self, provider: Provider) -> None:
        (provider.folder / "release").chmod(0o644)
        with pytest.raises(ProviderError, match="release must be an executable file"):
            providers.find("cloud")
        (provider.folder / "release").unlink()
        with pytest.raises(ProviderError, match="lacks its program"):
            providers.find("cloud")


class TestAsk:
    def test_gives_the_question_and_returns_the_answer(self, provider: Provider) -> None:
        assert answer(provider, 'print(json.dumps({"id": asked["name"]}))') == {"id": "n-1"}

    def test_passes_only_what_is_on_the_list(
        self, provider: Provider, monkeypatch: pytest.MonkeyPatch, settings: Settings
    ) -> None:
        monkeypatch.setenv("SECRET_KEY", "of-the-hub")
        monkeypatch.setenv("CLOUD_ZONE", "east")
        settings.PROVIDER_ENV = ["CLOUD_ZONE"]
        answer(provider, "print('{}')")
        assert {"PATH", "CLOUD_ZONE"} <= set(provider.calls[0]["env"])
        assert not {"SECRET_KEY", "DATABASE_URL", "REDIS_URL"} & set(provider.calls[0]["env"])

    def test_a_failure_quotes_its_complaint_without_the_token(self, provider: Provider) -> None:
        text = "print('no quota for', asked['join_token'], file=sys.stderr); sys.exit(3)"
        with pytest.raises(ProviderError, match=r"^provision exited with code 3: no quota for \*\*\*$"):
            answer(provider, text)

    def test_one_that_hangs_is_ended_with_all_that_it_started(self, provider: Provider) -> None:
        text = (
            "import subprocess, time\nchild = subprocess.Popen(['sleep', '600'])\n"
            "(here / 'child').write_text(str(child.pid))\ntime.sleep(600)"
        )
        with pytest.raises(ProviderError, match="did not answer in time and was ended"):
            answer(provider, text, seconds=2)
        child = int((provider.folder / "child").read_text())
        eventually(lambda: gone(child), 10, "its child is gone too")

    def test_what_it_leaves_running_on_purpose_keeps_nobody_waiting(self, provider: Provider) -> None:
        text = (
            "import subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
            "print(json.dumps({'id': str(child.pid)}))"
        )
        found = answer(provider, text)
        assert isinstance(found, dict)
        assert not gone(int(found["id"]))
        os.kill(int(found["id"]), 9)

    @pytest.mark.parametrize("said", ["not json", "", "[1]", "{"])
    def test_garbage_is_no_answer(self, provider: Provider, said: str) -> None:
        with pytest.raises(ProviderError, match=r"JSON"):
            answer(provider, f"print({said!r})")

    def test_a_flood_is_cut_off(self, provider: Provider) -> None:
        with pytest.raises(ProviderError, match=f"more than {MAX_ANSWER_BYTES} bytes"):
            answer(provider, "while True: print('x' * 100000)")

    def test_one_that_reads_nothing_may_answer(self, provider: Provider) -> None:
        path = provider.folder / "provision"
        path.write_text('#!/bin/sh\nexec 0<&-\necho \'{"id": "1"}\'\n')
        path.chmod(0o755)
        assert call(path, QUESTION, seconds=20) == {"id": "1"}

    def test_one_that_cannot_be_started_says_so(self, provider: Provider) -> None:
        path = provider.folder / "provision"
        path.write_text("#!/no/such/interpreter\n")
        path.chmod(0o755)
        with pytest.raises(ProviderError, match="could not be started"):
            call(path, QUESTION, seconds=20)
