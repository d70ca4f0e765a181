"""What the NVIDIA management library (NVML) answers instead of a value, sorted by what it means for the
reader.

The codes are those of nvml.h, which never change.
"""

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


class Unanswered(Exception):
    """No value this time. The message is the library's own word for it."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code
        self.said = said


class Unsupported(Unanswered):
    """This device, or this driver, never has that value, or never for this account."""


class DeviceGone(Unanswered):
    """The device does not answer any more, whatever it is asked."""


class LibraryGone(Unanswered):
    """Nothing answers any more until the library is initialised again."""


_KINDS: dict[int, type[Unanswered]] = {
    NOT_SUPPORTED: Unsupported,
    NO_PERMISSION: Unsupported,
    FUNCTION_NOT_FOUND: Unsupported,
    ARGUMENT_VERSION: Unsupported,
    DEPRECATED: Unsupported,
    GPU_IS_LOST: DeviceGone,
    RESET_REQUIRED: DeviceGone,
    GPU_NOT_FOUND: DeviceGone,
    UNINITIALIZED: LibraryGone,
    DRIVER_NOT_LOADED: LibraryGone,
    VERSION_MISMATCH: LibraryGone,
    LIBRARY_NOT_FOUND: LibraryGone,
}

_TROUBLES = {
    VERSION_MISMATCH: "The NVIDIA driver was updated while it ran: reboot, or reload its modules",
    DRIVER_NOT_LOADED: (
        "The NVIDIA driver is not loaded: load it (modprobe nvidia), and look into dmesg if that fails"
    ),
    LIBRARY_NOT_FOUND: (
        "This machine has NVIDIA GPUs but not the library libnvidia-ml.so.1: install the driver's "
        "user-space part "
        '(in a container: start it with the NVIDIA runtime and the capability "utility")'
    ),
    NO_PERMISSION: "The agent's account may not open the NVIDIA devices: let it read and write /dev/nvidia*",
    GPU_IS_LOST: "A GPU has fallen off the bus and no GPU can be read: reboot the machine",
}


def sorted_out(code: int, said: str) -> Unanswered:
    return _KINDS.get(code, Unanswered)(code, said)


def trouble(error: Unanswered) -> str:
    """Why no GPU can be read, for the owner of the machine."""
    other = f"The NVIDIA driver does not answer ({error.said}): look into dmesg, and reboot if it stays so"
    return f"{_TROUBLES.get(error.code, other)}."


def loss(error: Unanswered) -> str:
    """How one device was lost, for the owner of the machine."""
    if error.code == RESET_REQUIRED:
        return "It must be reset before it works again (nvidia-smi --gpu-reset), or the machine rebooted."
    return f"It does not answer any more ({error.said}): look into dmesg; a reboot usually brings it back."
