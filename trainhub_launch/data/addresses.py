"""Addresses of what a store has, without credentials."""

from __future__ import annotations

from urllib.parse import quote

from trainhub_launch.data.stores import AZURE_BLOB, DEFAULT_REGION, S3, Store


def make_uri(store: Store, path: str) -> str:
    """Returns how programs name the file or folder `path` of a store: `s3://BUCKET/PATH`, otherwise its
    address. "" is all of the store."""
    if store.kind == S3:
        return f"s3://{store.settings['bucket']}/{path}".rstrip("/")
    return make_url(store, path).rstrip("/")


def make_url(store: Store, key: str) -> str:
    """Returns the address of a file, from which anybody can read it if the store is public."""
    settings = store.settings
    if store.kind == S3:
        region = settings.get("region") or DEFAULT_REGION
        server = settings.get("endpoint") or f"https://s3.{region}.amazonaws.com"
        place = f"{server}/{settings['bucket']}"
    elif store.kind == AZURE_BLOB:
        server = settings.get("endpoint") or f"https://{settings['account']}.blob.core.windows.net"
        place = f"{server}/{settings['container']}"
    else:
        place = settings["url"].rstrip("/")
    return f"{place}/{quote(key, safe='/~')}"
