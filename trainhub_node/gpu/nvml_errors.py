"""Error codes of the NVIDIA management library (NVML), grouped by what they mean for the reader.

The codes are those of nvml.h, which never change."""

from __future__ import annotations

SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 0, 1, 2, 3, 4, 6
DRIVER_NOT_LOADED, TIMEOUT, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = 9, 10, 12, 13
GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH, ARGUMENT_VERSION, DEPRECATED, GPU_NOT_FOUND = (
    15,
    16,
    18,
    25,
    26,
    28,
)
UNKNOWN = 999


class QueryFailed(Exception):
    """A query returned no value this time. The message is the library's own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class QueryUnsupported(QueryFailed):
    """This device or driver never has this value, or never for this account."""


class DeviceLost(QueryFailed):
    """The device no longer answers any query."""


class LibraryLost(QueryFailed):
    """No query works until the library is initialised again."""


_KINDS: dict[int, type[QueryFailed]] = {
    NOT_SUPPORTED: QueryUnsupported,
    NO_PERMISSION: QueryUnsupported,
    FUNCTION_NOT_FOUND: QueryUnsupported,
    ARGUMENT_VERSION: QueryUnsupported,
    DEPRECATED: QueryUnsupported,
    GPU_IS_LOST: DeviceLost,
    RESET_REQUIRED: DeviceLost,
    GPU_NOT_FOUND: DeviceLost,
    UNINITIALIZED: LibraryLost,
    DRIVER_NOT_LOADED: LibraryLost,
    VERSION_MISMATCH: LibraryLost,
    LIBRARY_NOT_FOUND: LibraryLost,
}

_ADVICE = {
    VERSION_MISMATCH: "The NVIDIA driver was updated while it ran: reboot, or reload its modules",
    DRIVER_NOT_LOADED: (
        "The NVIDIA driver is not loaded: load it (modprobe nvidia), and check dmesg if that fails"
    ),
    LIBRARY_NOT_FOUND: (
        "This machine has NVIDIA GPUs but not the library libnvidia-ml.so.1: install the driver's "
        "user-space part "
        '(in a container: start it with the NVIDIA runtime and the capability "utility")'
    ),
    NO_PERMISSION: "The agent's account may not open the NVIDIA devices: let it read and write /dev/nvidia*",
    GPU_IS_LOST: "A GPU has fallen off the bus and no GPU can be read: reboot the machine",
}


def from_code(code: int, message: str) -> QueryFailed:
    """Returns the exception for an NVML error code."""
    return _KINDS.get(code, QueryFailed)(code, message)


def library_advice(error: QueryFailed) -> str:
    """Returns why no GPU can be read and what the owner of the machine can do, as a sentence."""
    default = f"The NVIDIA driver does not answer ({error.message}): check dmesg, and reboot if this persists"
    return f"{_ADVICE.get(error.code, default)}."


def device_advice(error: QueryFailed) -> str:
    """Returns how a device was lost and what the owner of the machine can do, as a sentence."""
    if error.code == RESET_REQUIRED:
        return "It must be reset before it works again (nvidia-smi --gpu-reset), or the machine rebooted."
    return f"It no longer responds ({error.message}): check dmesg; a reboot usually brings it back."
