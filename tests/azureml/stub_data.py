"""The datastores, datasets and secrets of the stub hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

Listed = dict[str, str]  # SHA-256 by path


class DataRequest(NamedTuple):
    """`data`: the body, if it is JSON."""

    method: str
    query: Mapping[str, str]
    data: Any
    body: bytes


class StubData:
    """`datastores`: by name; `contents`: bytes by SHA-256; `sent`: the paths of files whose bytes came."""

    def __init__(self) -> None:
        self.datastores: dict[str, dict[str, Any]] = {}
        self.datasets: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, bytes] = {}
        self.sent: list[str] = []
        self.secrets: dict[str, str] = {}
        self.may_store_secrets = True

    def answer(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        is_file = method == "PUT" and "/upload/files/" in path
        kind, *parts = [unquote(part) for part in path.split("/")[3:] if part]
        data = json.loads(body) if method != "GET" and not is_file and body else {}
        if kind == "secrets" and method == "GET":
            return (200, {}) if parts[0] in self.secrets else (404, {"detail": "There is no such secret."})
        if kind == "secrets":
            return self._store_secret(parts[0], data)
        if kind == "datastores":
            return self._datastore(method, parts, data)
        if not parts:
            if method == "GET":
                return 200, [self._row(name) for name in self.datasets]
            return 201, self._make(data["name"], data["datastore"], data["path"])
        if parts[0] not in self.datasets:
            return 404, {"detail": "There is no such dataset."}
        return self._dataset(DataRequest(method, query, data, body), parts[0], parts[1:])

    def _store_secret(self, name: str, data: Any) -> tuple[int, Any]:
        if not self.may_store_secrets:
            return 403, {"detail": "This needs the role owner."}
        self.secrets[name] = data["value"]
        return 200, {}

    def _datastore(self, method: str, parts: list[str], data: Any) -> tuple[int, Any]:
        if method == "GET":
            return 200, list(self.datastores.values())
        name = parts[0] if parts else data["name"]
        self.datastores[name] = {**self.datastores.get(name, {}), **data}
        return 200, self.datastores[name]

    def _dataset(self, request: DataRequest, name: str, rest: list[str]) -> tuple[int, Any]:
        row, data = self.datasets[name], request.data
        versions: list[Listed | None] = row["versions"]
        if not rest and request.method == "PATCH":
            row["description"] = data.get("description", row["description"])
            row["tags"].update(data.get("tags", {}))
            row["tags"] = {key: value for key, value in row["tags"].items() if value is not None}
        if not rest:
            return 200, self._row(name)
        if rest in (["uploads"], ["refresh"]):
            is_upload = rest == ["uploads"]
            if not is_upload or versions[-1] is not None:
                versions.append(None if is_upload else versions[-1])
            row["coming"] = {}
            return 201, self._version(name, len(versions))
        number = int(rest[1])
        if number > len(versions):
            return 404, {"detail": "There is no such version."}
        if rest[2:3] == ["upload"]:
            return self._upload(request, name, number, rest[3:])
        listed = versions[number - 1] or {}
        if len(rest) > 3:
            digest = listed.get("/".join(rest[3:]), "")
            return (200, self.contents[digest]) if digest else (404, {"detail": "no such file"})
        if rest[2:] == ["files"]:
            files = [
                {"path": path, "size": 1, "etag": f'"{digest}"'} for path, digest in sorted(listed.items())
            ]
            return 200, {"count": len(files), "start": 0, "files": files[int(request.query["start"]) :]}
        return 200, self._version(name, number)

    def _upload(self, request: DataRequest, name: str, number: int, rest: list[str]) -> tuple[int, Any]:
        row, data, body = self.datasets[name], request.data, request.body
        coming: Listed = row["coming"]
        if request.method == "PUT":
            digest = hashlib.sha256(body).hexdigest()
            assert str(len(body)) == request.query["size"]
            self.contents[digest] = body
            coming["/".join(rest[1:])] = digest
            self.sent.append("/".join(rest[1:]))
            return 200, {}
        if rest == ["files"]:
            present = {
                file["path"]: file["sha256"] for file in data["files"] if file["sha256"] in self.contents
            }
            coming.update(present)
            missing = [file["path"] for file in data["files"] if file["path"] not in present]
            return 200, {"missing": [{"path": path, "offset": 0} for path in missing], "refused": []}
        assert data["files"] == len(coming)
        row["versions"][number - 1] = dict(coming)
        return 200, self._version(name, number)

    def _make(self, name: str, datastore: str, path: str) -> dict[str, Any]:
        is_hub = self.datastores[datastore]["kind"] == "hub"
        self.datasets[name] = {
            "name": name,
            "datastore": datastore,
            "path": path,
            "description": "",
            "tags": {},
            "versions": [None if is_hub else {"a.txt": "", "b.txt": ""}],
            "coming": {},
        }
        return self._version(name, 1)

    def _row(self, name: str) -> dict[str, Any]:
        row = self.datasets[name]
        ready = [number for number, listed in enumerate(row["versions"], 1) if listed is not None]
        newest = self._version(name, ready[-1]) if ready else None
        return {
            **{key: row[key] for key in ("name", "datastore", "path", "description", "tags")},
            "newest": newest,
        }

    def _version(self, name: str, number: int) -> dict[str, Any]:
        listed = self.datasets[name]["versions"][number - 1]
        state = "uploading" if listed is None else "ready"
        return {"dataset": name, "version": number, "state": state, "files": len(listed or ())}
