"""Registered models and their versions. Written by packaging/make_sdk_records.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainhub_sdk.records.record import Record


@dataclass
class VersionFile(Record):
    path: str = ""
    size_bytes: int = 0
    sha256: str = ""
    place: str = ""
    """Where the file lies if that is in a datastore; its size and SHA-256 are then as the node said.
    Empty: on the hub."""
    scan: dict[str, Any] = field(default_factory=dict)
    """The scanner's verdict on the file, with its findings: code that loading the file would run."""
    url: str = ""
    """The address of the file's content; supports Range requests."""


@dataclass
class ModelVersionRecord(Record):
    model: str = ""
    version: int = 0
    aliases: list[str] = field(default_factory=list)
    stage: str = ""
    """The stage in MLflow's sense: None, Staging, Production or Archived."""
    tags: dict[str, Any] = field(default_factory=dict)
    kind: str = ""
    """The origin of the version: run, logged_model, upload, export, or version (a copy of another
    version)."""
    source: str = ""
    """The address from which the version was registered; may be empty."""
    run: str | None = None
    """The id of the run that the version comes from; null if there is none or it was purged."""
    run_number: int | None = None
    logged_model: str | None = None
    parent: str | None = None
    """The version that this one was made from, as models:/NAME/NUMBER; null if there is none."""
    path: str = ""
    """The registered file or folder, relative to the run's outputs; empty if there is none."""
    description: str = ""
    created_by: str | None = None
    created_at: str = ""
    scan: str = ""
    """The worst verdict of the scanner on the version's files: clean, contains_code, not_scanned or
    dangerous; pending until the scanner has scanned the version, or while it scans it again."""
    zip_url: str = ""
    """The address of a zip with all files and the certificate; supports Range requests."""
    certificate_url: str = ""
    signature_url: str = ""
    files: list[VersionFile] = field(default_factory=list)


@dataclass
class ModelRecord(Record):
    name: str = ""
    description: str = ""
    tags: dict[str, Any] = field(default_factory=dict)
    protected: list[str] = field(default_factory=list)
    """The aliases that only owners may change."""
    created_at: str = ""
    updated_at: str = ""
    latest_version: int = 0
    aliases: dict[str, Any] = field(default_factory=dict)
    """Each alias, mapped to the number of its version."""
