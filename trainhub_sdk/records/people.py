"""Who acts, where, and what was used. Written by packaging/make_sdk_records.py."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_sdk.records.record import Record


@dataclass
class Identity(Record):
    user: str = ""
    display_name: str = ""
    """The name that the user has given, or empty."""
    email: str = ""
    """The user's confirmed mail address, or empty."""
    workspace: str = ""
    role: str = ""
    scope: str = ""
    """read: the token may only read. write: it may do everything that the role allows."""
    max_source_files: int = 0
    """How many files the source of a run may have."""
    max_source_bytes: int = 0
    """How many bytes the files of a source may have together."""


@dataclass
class Workspace(Record):
    slug: str = ""
    """The short name, which never changes."""
    name: str = ""
    members: int = 0
    created_at: str = ""
    archived_at: str | None = None
    """Since when its members can only read it; null if they can work in it."""


@dataclass
class UsageTotal(Record):
    name: str = ""
    """The user, experiment, cluster, month or run number that the totals are for."""
    title: str = ""
    """The run's name if the grouping is by run and the run still exists; otherwise empty."""
    gpu_hours: float = 0.0
    """Hours of allocated GPUs, summed over the GPUs, from placement to release."""
    node_hours: float = 0.0
    """Hours of nodes with an allocation, summed over the nodes."""
    energy_wh: float | None = None
    """The measured energy of the GPUs in watt-hours; null if there are no measurements."""
    measured_gpu_hours: float = 0.0
    """The GPU-hours that `energy_wh` covers."""
    runs: int = 0
