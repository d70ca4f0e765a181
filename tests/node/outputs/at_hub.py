"""What a hub knows of outputs that lie in a datastore."""

from __future__ import annotations

import json
from typing import Any


class StoredOutputsAtHub:
    """`files`: path -> what the node has said of it, of all attempts."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, Any]] = {}

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        report = json.loads(body)
        self.files |= {file["path"]: file for file in report["files"]}
        for name in report["removed"]:
            del self.files[name]
        return 204, b""
