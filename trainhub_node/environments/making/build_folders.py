"""Where images are built, and the removal of what builds have left there that were killed."""

from __future__ import annotations

import os

from trainhub_node.untrusted import removal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# podman takes at most 50 characters for this folder.
RUN = "/run"
PREFIX = "trainhub-build-"


def podman_folder(build: str) -> str:
    """Returns podman's folder for what lives only as long as the build."""
    return f"{RUN}/{PREFIX}{build[:20]}"


def remove_abandoned(folder: str, is_tracked: Callable[[str], bool]) -> list[str]:
    """Removes the folders of builds that this node no longer tracks. Returns the ids of these builds. Raises
    OSError."""
    builds = os.listdir(folder) if os.path.isdir(folder) else []
    abandoned = [build for build in builds if not is_tracked(build)]
    for build in abandoned:
        removal.remove_tree(podman_folder(build))
        removal.remove_tree(f"{folder}/{build}")
    return abandoned
