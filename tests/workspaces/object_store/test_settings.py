"""BLOB_STORE and the settings beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainhub.env import EnvError
from trainhub.storage.blob_store import store_configuration


def configured(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("value", ["", "disk", " "])
def test_the_disk_is_the_default(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    configured(monkeypatch, BLOB_STORE=value)
    assert store_configuration() is None


def test_all_of_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret\n")
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    configured(
        monkeypatch,
        BLOB_STORE="s3://university/trainhub/blobs/",
        BLOB_STORE_ENDPOINT="https://s3.example.org/",
        BLOB_STORE_REGION="eu",
        BLOB_STORE_KEY_ID="AKIA",
        BLOB_STORE_SECRET_FILE=str(tmp_path / "secret"),
        BLOB_STORE_CA_FILE=str(tmp_path / "ca.pem"),
        BLOB_STORE_PRESIGN="1",
        BLOB_CACHE_BYTES="1000",
    )
    configuration = store_configuration()
    assert configuration is not None
    assert (configuration.bucket, configuration.prefix) == ("university", "trainhub/blobs")
    assert configuration.place == "s3://university/trainhub/blobs"
    assert configuration.endpoint == "https://s3.example.org"
    assert (configuration.key_id, configuration.secret) == ("AKIA", "the secret")
    assert configuration.is_path_style
    assert configuration.is_presigned
    assert configuration.cache_bytes == 1000


def test_at_aws_the_bucket_is_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    configured(monkeypatch, BLOB_STORE="s3://university")
    configuration = store_configuration()
    assert configuration is not None
    assert not configuration.is_path_style


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"BLOB_STORE": "https://s3.example.org/bucket"}, "BLOB_STORE=.* must be s3://BUCKET"),
        ({"BLOB_STORE": "s3://"}, "must be s3://BUCKET"),
        ({"BLOB_STORE": "s3://b1b/../x"}, "must be s3://BUCKET"),
        ({"BLOB_STORE_KEY_ID": "AKIA"}, "BLOB_STORE_SECRET is not set"),
        ({"BLOB_STORE_SECRET": "x"}, "BLOB_STORE_KEY_ID is not set"),
        ({"BLOB_STORE_ENDPOINT": "s3.example.org"}, "BLOB_STORE_ENDPOINT=s3.example.org must be like"),
        ({"BLOB_STORE_CA_FILE": "/nowhere"}, "BLOB_STORE_CA_FILE=/nowhere cannot be read"),
        ({"BLOB_CACHE_BYTES": "-1"}, "BLOB_CACHE_BYTES"),
        ({"BLOB_STORE_KEEP_DELETED_DAYS": "x"}, "BLOB_STORE_KEEP_DELETED_DAYS"),
    ],
)
def test_what_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], sentence: str
) -> None:
    configured(monkeypatch, **{"BLOB_STORE": "s3://university", **values})
    with pytest.raises(EnvError, match=sentence):
        store_configuration()
