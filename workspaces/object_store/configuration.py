"""What the settings BLOB_STORE… say. Imports no Django, because the settings import this module."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StoreConfiguration:
    """`prefix`: what stands before the names of all objects, without slashes at its ends. `endpoint`: "" for
    AWS. `key_id` and `secret`: both "" for the role of the machine. `certificates`: PEM of further
    authorities. `makes_bucket`: whether a start makes the bucket if there is none. `is_presigned`: whether
    clients may be sent to the store by signed addresses, below `public_endpoint`. `cache_bytes`: of the
    copies on the local disk, 0 for any number. `deleted_days`: how long an object stays after the hub has
    deleted the file."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""
    key_id: str = ""
    secret: str = ""
    certificates: str = ""
    is_path_style: bool = True
    makes_bucket: bool = False
    is_presigned: bool = False
    public_endpoint: str = ""
    cache_bytes: int = 0
    deleted_days: float = 0.0
    # A store that answers 503, or not at all, is asked again for so long. What is not uploaded then waits on
    # the local disk, and who reads gets an error.
    retry_s: float = 20.0

    @property
    def place(self) -> str:
        """Where the objects lie, as BLOB_STORE names it."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def __repr__(self) -> str:
        # Without the secret: settings are printed by debuggers and error pages.
        return f"StoreConfiguration({self.place!r})"
