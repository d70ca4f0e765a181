from __future__ import annotations


class LaunchError(Exception):
    """Base of this floor's errors; the message is a sentence for the person who must act."""


class SpecError(LaunchError):
    """A field of a RunSpec is wrong.

    `field` is the JSON path (`distribution.process_count`), so that a page, the API and the CLI
    can all put the message where the mistake was made.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


class WireError(LaunchError):
    """A message from the other side does not have the agreed shape."""


class UnknownVariable(LaunchError):
    """`$NAME` refers to a variable that the process will not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"${name} is not set for this process")
        self.name = name
