"""The file of keys, and what a stored value is bound to."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from pytest_django import Settings

from workspaces.secrets import keyring
from workspaces.secrets.errors import SecretsUnavailable


@pytest.fixture
def file(settings: Settings, tmp_path: Path) -> Path:
    settings.SECRETS_KEYRING = tmp_path / "beside" / "keys"
    return Path(settings.SECRETS_KEYRING)


class TestFile:
    def test_is_made_once_for_this_account_only(self, file: Path) -> None:
        keyring.create()
        first = keyring.load()
        keyring.create()
        assert keyring.load() == first
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert [path.name for path in file.parent.iterdir()] == ["keys"]

    def test_that_is_missing_is_named_with_the_way_out(self, file: Path) -> None:
        with pytest.raises(SecretsUnavailable, match=r"are missing; restore that file.*new-keyring") as error:
            keyring.load()
        assert str(file) in error.value.message

    @pytest.mark.parametrize("content", ["nonsense", "aabbccdd !!!!", "aabb AAAA", "aabbccdd AAAA extra"])
    def test_that_is_damaged_is_named_with_its_line(self, file: Path, content: str) -> None:
        keyring.create()
        file.write_text(f"# comment\n\n{content}\n")
        with pytest.raises(SecretsUnavailable, match="damaged in line 3"):
            keyring.load()

    def test_without_a_key_is_told_from_a_damaged_one(self, file: Path) -> None:
        keyring.create()
        file.write_text("# nothing\n")
        with pytest.raises(SecretsUnavailable, match="holds no key"):
            keyring.load()

    def test_that_is_no_text_or_a_folder_is_no_traceback(self, file: Path) -> None:
        file.mkdir(parents=True)
        with pytest.raises(SecretsUnavailable, match="cannot be read"):
            keyring.load()
        file.rmdir()
        file.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(SecretsUnavailable, match="it is no text"):
            keyring.load()

    def test_cannot_be_made_where_there_is_no_folder_for_it(self, settings: Settings, tmp_path: Path) -> None:
        settings.SECRETS_KEYRING = tmp_path / "a" / "b" / "keys"
        with pytest.raises(SecretsUnavailable, match="cannot be made: No such file or directory; set it to"):
            keyring.create()


class TestSeal:
    def test_opens_with_the_same_context_only(self, file: Path) -> None:
        keyring.create()
        keys = keyring.load()
        sealed = keys.seal("value", "1|workspace|a|1")
        assert keys.open(sealed, "1|workspace|a|1") == "value"
        for other in ("2|workspace|a|1", "1|person:1|a|1", "1|workspace|b|1", "1|workspace|a|2"):
            with pytest.raises(SecretsUnavailable, match="copied from another place"):
                keys.open(sealed, other)

    def test_two_of_the_same_value_look_different_and_neither_shows_it(self, file: Path) -> None:
        keyring.create()
        keys = keyring.load()
        first, second = keys.seal("the value", "c"), keys.seal("the value", "c")
        assert first != second
        assert b"value" not in first

    def test_of_another_key_or_a_newer_version_is_told_apart(self, file: Path) -> None:
        keyring.create()
        keys = keyring.load()
        sealed = keys.seal("value", "c")
        with pytest.raises(SecretsUnavailable, match=r"not in .*keys; restore that file, or type"):
            keyring.Keyring((keyring.new_key(),)).open(sealed, "c")
        with pytest.raises(SecretsUnavailable, match="a newer version"):
            keys.open(b"\x02" + sealed[1:], "c")
        with pytest.raises(SecretsUnavailable, match="was changed"):
            keys.open(sealed[:-1] + bytes([sealed[-1] ^ 1]), "c")
