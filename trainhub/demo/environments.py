"""The environments that people of the demo made, with versions that were locked, that failed, and that are
outdated."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import time_machine

from environments import changes, lifecycle
from environments.curated import BY_NAME, ONNX
from environments.lock_file import download_bytes, read_lock
from environments.models import EnvironmentVersion
from environments.states import VersionState
from trainhub.demo.story import DAYS, MIRA, TRAINING_ENVIRONMENT
from workspaces.access import Principal

LOCKS = Path(__file__).parent / "locks"
RESOLVING_S = 4.0


@dataclass(frozen=True)
class PastVersion:
    """A version that was made `days` before the start of the demo. `lock`: "" for one that failed with
    `failure`. `outdated`, `successor`: if it was marked so later."""

    days: float
    name: str
    source: str
    lock: str = ""
    failure: str = ""
    outdated: str = ""
    successor: str = ""


def _lock(file: str) -> str:
    return (LOCKS / file).read_text()


def past_versions() -> tuple[PastVersion, ...]:
    """Returns the versions, the oldest first. The locks and the failure are those of the hub's resolver."""
    export = BY_NAME[ONNX]
    return (
        PastVersion(
            DAYS - 0.2,
            TRAINING_ENVIRONMENT,
            "numpy==1.26.4\n",
            _lock("signal-training-1.lock"),
            outdated="numpy 1.26 gets no more fixes.",
            successor=f"{TRAINING_ENVIRONMENT}:3",
        ),
        PastVersion(
            9.3,
            TRAINING_ENVIRONMENT,
            "numpy==2.4.*\nscipy==1.11.4\n",
            failure=(
                "These versions do not fit together: scipy==1.11.4 needs numpy>=1.21.6,<1.28.0; the "
                "requirements name numpy==2.4.* and scipy==1.11.4. Change one of them."
            ),
        ),
        PastVersion(9.2, TRAINING_ENVIRONMENT, "numpy==2.4.*\n", _lock("signal-training-3.lock")),
        PastVersion(4.5, "signal-export", "\n".join([*export.spec.requirements, ""]), export.lock),
    )


def write_environments(staff: dict[str, Principal], clock: time_machine.Traveller, now: datetime) -> None:
    """Makes the versions at their times, as the hub's worker would have locked them."""
    who = staff[MIRA]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    versions = []
    for past in past_versions():
        clock.move_to(now - timedelta(days=past.days))
        version = changes.create_version(who, past.name, "pip", past.source, python)
        versions.append(version)
        packages = read_lock(past.lock)
        EnvironmentVersion.objects.filter(pk=version.pk).update(
            state=VersionState.LOCKED if past.lock else VersionState.FAILED,
            lock=past.lock,
            failure=past.failure,
            package_count=len(packages) if past.lock else None,
            download_bytes=download_bytes(packages),
            attempts=1,
            resolved_at=datetime.now(UTC) + timedelta(seconds=RESOLVING_S),
        )
    for past, version in zip(past_versions(), versions, strict=True):
        if past.outdated:
            lifecycle.mark_outdated(who, version, past.outdated, past.successor)
