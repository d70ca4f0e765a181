"""What the hub of the tests does with checkpoints: it gives each version a number, and remembers what
comes."""

from __future__ import annotations

import json
import re
from typing import Any

ADDRESS = re.compile(r"/api/v1/node/checkpoints/([0-9a-f]{32})/(\d+)/(?:(\d+|removed)/)?\Z")


class CheckpointsAtHub:
    """`announcements`: all bodies; `parts`: number -> the part that was delivered; `names`: number ->
    name. `is_busy`: it takes nothing yet. `shares`: whether parts may have files of earlier ones; `surplus`:
    what announcements are answered besides; `removals`: what the node has removed."""

    def __init__(self) -> None:
        self.announcements: list[dict[str, Any]] = []
        self.parts: dict[int, dict[str, Any]] = {}
        self.names: dict[int, str] = {}
        self.is_busy = False
        self.shares = True
        self.surplus: dict[str, Any] = {}
        self.removals: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        match = ADDRESS.match(path)
        assert match is not None, path
        data = json.loads(body)
        if match[3] == "removed":
            self.removals.append(data)
            return 204, b""
        if match[3] is not None:
            if not self.shares and any("key" in file for file in data["files"]):
                return 409, b'{"title": "Refused", "detail": "It is not kept any more."}'
            self.parts[int(match[3])] = data
            return 204, b""
        self.announcements.append(data)
        numbers = {} if self.is_busy else {entry["name"]: self._number(entry) for entry in data["entries"]}
        return 200, json.dumps({"numbers": numbers, **self.surplus}).encode()

    def _number(self, entry: dict[str, Any]) -> int:
        if entry["wrong"]:
            return 0
        number = self._numbers.setdefault((entry["name"], entry["version"]), len(self._numbers) + 1)
        self.names[number] = entry["name"]
        return number

    def signs(self) -> dict[str, str]:
        """The last sign of each name that was announced."""
        return {entry["name"]: entry["sign"] for body in self.announcements for entry in body["entries"]}
