"""Reads the settings of the object store."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from trainhub import env
from workspaces.object_store.configuration import StoreConfiguration

_BUCKET = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,62}")
_PREFIX = re.compile(r"[A-Za-z0-9._/-]{0,300}")


def store_configuration() -> StoreConfiguration | None:
    """Returns what BLOB_STORE and the settings beside it say; None if it is not set, or "disk". Raises
    EnvError."""
    place = env.text("BLOB_STORE", "").strip()
    if place in ("", "disk"):
        return None
    parts = urlsplit(place)
    prefix = parts.path.strip("/")
    is_right = parts.scheme == "s3" and _BUCKET.fullmatch(parts.netloc) and _PREFIX.fullmatch(prefix)
    if not is_right or ".." in prefix.split("/"):
        raise env.EnvError(
            f"BLOB_STORE={place} must be s3://BUCKET or s3://BUCKET/PREFIX, or `disk` for the local disk; "
            "the address of the server belongs into BLOB_STORE_ENDPOINT"
        )
    key_id, secret = env.secret("BLOB_STORE_KEY_ID"), env.secret("BLOB_STORE_SECRET")
    if bool(key_id) != bool(secret):
        unset = "BLOB_STORE_SECRET" if key_id else "BLOB_STORE_KEY_ID"
        raise env.EnvError(
            f"{unset} is not set: name both parts of the access key, or neither for the machine's role"
        )
    endpoint = env.web_url("BLOB_STORE_ENDPOINT", env.text("BLOB_STORE_ENDPOINT", ""))
    public = env.web_url("BLOB_STORE_PUBLIC_ENDPOINT", env.text("BLOB_STORE_PUBLIC_ENDPOINT", ""))
    return StoreConfiguration(
        bucket=parts.netloc,
        prefix=prefix,
        endpoint=endpoint,
        region=env.text("BLOB_STORE_REGION", ""),
        key_id=key_id,
        secret=secret,
        certificates=_certificates(),
        # Other servers than AWS seldom have a name of its own for each bucket.
        is_path_style=env.boolean("BLOB_STORE_PATH_STYLE", bool(endpoint)),
        makes_bucket=env.boolean("BLOB_STORE_MAKE_BUCKET", False),
        is_presigned=env.boolean("BLOB_STORE_PRESIGN", False),
        public_endpoint=public,
        cache_bytes=env.integer("BLOB_CACHE_BYTES", 50 * 2**30),
        deleted_days=env.number("BLOB_STORE_KEEP_DELETED_DAYS", 7, most=env.MOST_DAYS),
    )


def _certificates() -> str:
    path = env.text("BLOB_STORE_CA_FILE", "")
    if not path:
        return ""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise env.EnvError(f"BLOB_STORE_CA_FILE={path} cannot be read: {error}") from error
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise env.EnvError(f"BLOB_STORE_CA_FILE={path} holds no certificate in PEM")
    return text
