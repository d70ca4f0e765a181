"""The notice about an environment that should no longer be used."""

from __future__ import annotations

from environments.curated import succession_notice
from environments.models import EnvironmentVersion
from workspaces.models import Workspace


def outdated_notice(version: EnvironmentVersion) -> str:
    """Returns a sentence about a version that is outdated, with what to do; "" for all others."""
    if not version.outdated:
        return ""
    if version.successor:
        name, _, number = version.successor.partition(":")
        remedy = f"choose {name} {number}".rstrip()
    else:
        remedy = "choose another version"
    return f"{version} is outdated: {version.outdated.rstrip('.')}; {remedy} for new runs."


def environment_notice(workspace: Workspace, name: str, version: str = "") -> str:
    """Returns the notice about the environment that a run or spec names; "" if there is none."""
    notice = succession_notice(name)
    if notice or not (version.isdecimal() and len(version) <= 9) or "\x00" in name:
        return notice
    row = (
        EnvironmentVersion.objects.select_related("environment")
        .filter(environment__workspace=workspace, environment__name=name, number=int(version))
        .exclude(outdated="")
        .defer("lock", "source")
        .first()
    )
    return outdated_notice(row) if row is not None else ""
