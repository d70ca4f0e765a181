from __future__ import annotations


class LaunchError(Exception):
    """Base class of this package's errors. The message is a sentence for the person who has to act."""


class SpecError(LaunchError):
    """A field of a RunSpec is wrong.

    `field` is the JSON path (such as `distribution.process_count`), so that a page, the API and the CLI can
    show the message beside the field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


class WireError(LaunchError):
    """A message from a node or from the hub does not have the agreed format."""


class UnknownVariable(LaunchError):
    """`$NAME` refers to a variable that the process will not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"${name} is not set for this process")
        self.name = name
