"""A dataset at a path: only inputs of a job have one."""

from __future__ import annotations

from typing import Any


class MountContext:
    """`mount_point`: the path of the data, which the job has before it starts."""

    def __init__(self, mount_point: str) -> None:
        self.mount_point = mount_point

    def start(self) -> None:
        """The data is there."""

    def stop(self) -> None:
        """The node removes it after the job."""

    def __enter__(self) -> MountContext:
        return self

    def __exit__(self, *_error: Any) -> None:
        self.stop()
