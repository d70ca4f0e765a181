from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainhub_node import configuration, settings

GOOD = {
    "TRAINHUB_HUB_URL": "http://10.0.0.1:8000/",
    "TRAINHUB_NODE_TOKEN": "t",
    "TRAINHUB_NODE_NAME": "n1",
    "TRAINHUB_NODE_DIR": "/var/lib/trainhub-node",
}


class TestRead:
    def test_needs_little(self) -> None:
        read = settings.read(GOOD)

        assert (read.hub_url, read.token, read.name) == ("http://10.0.0.1:8000", "t", "n1")
        assert read.slots == max(8, 4 * read.cores)
        assert os.access(read.python, os.X_OK)

    def test_takes_the_token_from_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("secret\n")

        read = settings.read(
            {**GOOD, "TRAINHUB_NODE_TOKEN": "", "TRAINHUB_NODE_TOKEN_FILE": str(tmp_path / "token")}
        )

        assert read.token == "secret"

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("TRAINHUB_HUB_URL", "", "TRAINHUB_HUB_URL is not set; give the hub's address"),
            ("TRAINHUB_HUB_URL", "hub:8000", "TRAINHUB_HUB_URL=hub:8000 must be like https://"),
            ("TRAINHUB_NODE_TOKEN", "", "TRAINHUB_NODE_TOKEN (or _FILE) is not set"),
            ("TRAINHUB_NODE_DIR", "", "TRAINHUB_NODE_DIR is not set"),
            ("TRAINHUB_NODE_SLOTS", "many", "TRAINHUB_NODE_SLOTS=many must be a whole number above 0"),
            ("TRAINHUB_NODE_CACHE_BYTES", "0", "TRAINHUB_NODE_CACHE_BYTES=0 must be a whole number above 0"),
            (
                "TRAINHUB_NODE_PYTHON",
                "/no/python",
                "TRAINHUB_NODE_PYTHON=/no/python is not a file that the agent may execute",
            ),
            (
                "TRAINHUB_NODE_CONTAINERS",
                "lxc",
                "TRAINHUB_NODE_CONTAINERS=lxc must be podman, docker or off",
            ),
            (
                "TRAINHUB_NODE_NFS_SERVERS",
                "files:2049",
                "TRAINHUB_NODE_NFS_SERVERS=files:2049 must be none, or",
            ),
            ("TRAINHUB_NODE_RUN_AS", "no-such-account", "TRAINHUB_NODE_RUN_AS=no-such-account"),
            ("TRAINHUB_NODE_ADDRESS", "gpu-a", "TRAINHUB_NODE_ADDRESS=gpu-a must be an IP address"),
            (
                "TRAINHUB_NODE_INTERFACE",
                "eth77",
                "TRAINHUB_NODE_INTERFACE=eth77 is not an interface here; there are: lo",
            ),
            ("TRAINHUB_HUB_CA", "/no/ca.pem", "TRAINHUB_HUB_CA=/no/ca.pem cannot be read: No such file"),
            ("TRAINHUB_HUB_CA", __file__, f"TRAINHUB_HUB_CA={__file__} is not a certificate in PEM form"),
        ],
    )
    def test_refuses_by_name(self, name: str, value: str, message: str) -> None:
        with pytest.raises(settings.SettingsError) as refused:
            settings.read({**GOOD, name: value})

        assert str(refused.value).startswith(message)


class TestConfiguration:
    """What a join wrote down."""

    def test_stands_in_for_variables_and_yields_to_them(self, tmp_path: Path) -> None:
        written = {
            "hub_url": "http://10.0.0.1:8000",
            "token": "t",
            "name": "n1",
            "slots": "3",
            "cluster": "main",
        }
        configuration.write(tmp_path, written, "")

        read = settings.read(configuration.environment(tmp_path, {"TRAINHUB_NODE_NAME": "n2"}))

        assert (read.hub_url, read.token, read.name, read.slots) == ("http://10.0.0.1:8000", "t", "n2", 3)
        assert (read.folder, read.hub_ca) == (tmp_path, None)

    def test_yields_to_a_file_with_a_token(self, tmp_path: Path) -> None:
        configuration.write(tmp_path, {"hub_url": "http://10.0.0.1:8000", "token": "old"}, "")
        (tmp_path / "token").write_text("new\n")

        env = configuration.environment(tmp_path, {"TRAINHUB_NODE_TOKEN_FILE": str(tmp_path / "token")})

        assert settings.read(env).token == "new"

    def test_is_not_needed_where_the_variables_say_all(self, tmp_path: Path) -> None:
        assert settings.read(configuration.environment(tmp_path, GOOD)).folder == tmp_path

    def test_loses_the_authority_of_an_earlier_hub(self, tmp_path: Path) -> None:
        configuration.write(tmp_path, {"hub_url": "https://a"}, "a certificate")
        configuration.write(tmp_path, {"hub_url": "http://10.0.0.1:8000"}, "")

        assert sorted(path.name for path in tmp_path.iterdir()) == [configuration.FILE]

    @pytest.mark.parametrize("text", ["{", "[1]", ""])
    def test_is_refused_when_damaged(self, tmp_path: Path, text: str) -> None:
        (tmp_path / configuration.FILE).write_text(text)

        with pytest.raises(settings.SettingsError, match="is damaged; join again with --replace"):
            configuration.environment(tmp_path, {})

    def test_is_missed_where_there_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(settings.SettingsError, match="this machine is no node yet"):
            configuration.environment(tmp_path, {})

    def test_lies_where_its_owner_expects_it(self, tmp_path: Path) -> None:
        assert configuration.folder("here", {"TRAINHUB_NODE_DIR": "/there"}) == Path("here").absolute()
        assert configuration.folder("", {"TRAINHUB_NODE_DIR": "/there"}) == Path("/there")
        assert configuration.folder("", {}) == configuration.default_folder()
