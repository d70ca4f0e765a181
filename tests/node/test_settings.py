from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainhub_node import settings

GOOD = {
    "TRAINHUB_HUB_URL": "http://10.0.0.1:8000/", "TRAINHUB_NODE_TOKEN": "t", "TRAINHUB_NODE_NAME": "n1",
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

        read = settings.read({**GOOD, "TRAINHUB_NODE_TOKEN": "", "TRAINHUB_NODE_TOKEN_FILE": str(tmp_path / "token")})

        assert read.token == "secret"

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("TRAINHUB_HUB_URL", "", "TRAINHUB_HUB_URL is not set; give the hub's address"),
            ("TRAINHUB_HUB_URL", "hub:8000", "TRAINHUB_HUB_URL=hub:8000 must be like https://"),
            ("TRAINHUB_NODE_TOKEN", "", "TRAINHUB_NODE_TOKEN (or _FILE) is not set"),
            ("TRAINHUB_NODE_DIR", "", "TRAINHUB_NODE_DIR is not set"),
            ("TRAINHUB_NODE_SLOTS", "many", "TRAINHUB_NODE_SLOTS=many must be a whole number above 0"),
            ("TRAINHUB_NODE_CACHE_BYTES", "0", "TRAINHUB_NODE_CACHE_BYTES=0 must be a whole number above 0"),
            ("TRAINHUB_NODE_PYTHON", "/no/python", "TRAINHUB_NODE_PYTHON=/no/python is not a file that the agent may execute"),
            ("TRAINHUB_NODE_RUN_AS", "no-such-account", "TRAINHUB_NODE_RUN_AS=no-such-account"),
        ],
    )
    def test_refuses_by_name(self, name: str, value: str, said: str) -> None:
        with pytest.raises(settings.SettingsError) as refused:
            settings.read({**GOOD, name: value})

        assert str(refused.value).startswith(said)
