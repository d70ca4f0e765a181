"""What a `command` means: the SDK v1 joins it with blanks and gives it to a shell; a hub starts programs
without one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from trainhub_sdk.shell_command import split_line

# The address of a file that processes share: torch needs none where it has MASTER_ADDR.
_INIT_METHOD = re.compile(r"\$(?:AZ_BATCHAI_PYTORCH_INIT_METHOD\b|\{AZ_BATCHAI_PYTORCH_INIT_METHOD\})")


def split_command(command: str | Iterable[Any]) -> list[str]:
    """Returns the program and its arguments; a shell with the line, where it needs one."""
    line = command if isinstance(command, str) else " ".join(argument_text(part) for part in command)
    return split_line(line)


def argument_text(argument: Any) -> str:
    """Returns an argument as the text that the script gets."""
    return argument if isinstance(argument, str) else str(argument)


def replace_init_method(text: str) -> str:
    """Returns an argument in which the variable for the shared file of Azure is the value that needs none."""
    return _INIT_METHOD.sub("env://", text)
