"""An upload by a program, as docs/data.md describes it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import httpx

PIECE = 8 * 2**20


def begin(client: httpx.Client, dataset: str) -> str:
    """Begins an upload, or goes on with it. Returns its address."""
    version = client.post(f"/api/v1/datasets/{dataset}/uploads/").raise_for_status().json()
    return f"/api/v1/datasets/{dataset}/versions/{version['version']}/upload/"


def send(
    client: httpx.Client, address: str, files: Mapping[str, bytes], time: float = 1_700_000_000.0
) -> int:
    """Sends what the hub lacks, and makes the version. Returns how many files were sent."""
    named = [{"path": path, "size": len(data), "modified_at": time} for path, data in files.items()]
    answer = client.post(f"{address}files/", json={"files": named}).raise_for_status().json()
    assert answer["refused"] == []
    for item in answer["missing"]:
        data = files[item["path"]]
        url = f"{address}files/{quote(item['path'])}?modified_at={time}&size={len(data)}"
        if len(data) <= PIECE:
            client.put(url, content=data).raise_for_status()
            continue
        for start in range(item["offset"], len(data), PIECE):
            end = min(start + PIECE, len(data))
            span = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
            client.put(url, content=data[start:end], headers=span).raise_for_status()
    client.post(f"{address}finish/", json={"files": len(files)}).raise_for_status()
    return len(answer["missing"])
