"""Meanings of NVIDIA's XID errors and what to do about them (docs.nvidia.com/deploy/xid-errors), for the most
common ones."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_launch.severity import CRITICAL, WARNING


@dataclass(frozen=True)
class Xid:
    meaning: str
    remedy: str
    severity: str = WARNING


PROGRAM = "The program is the most likely cause: read the run's log, and run it with CUDA_LAUNCH_BLOCKING=1."
RESET = "Drain the node, end its processes, and reset the GPU or restart the machine."
REPLACE = "Drain the node and restart the machine; if it returns, replace the GPU."
LINK = "Drain the node and restart the machine; if it returns, check the NVLink connections."
UNKNOWN = Xid("an error that the driver reports", "Look it up in NVIDIA's list of XID errors.")

CATALOGUE: dict[int, Xid] = {
    8: Xid("a kernel did not end in time", PROGRAM),
    13: Xid("an illegal instruction or address in a kernel", PROGRAM),
    31: Xid("access to an invalid memory address", PROGRAM),
    32: Xid("a corrupted command buffer", PROGRAM),
    38: Xid("the driver's firmware failed", RESET, CRITICAL),
    43: Xid("the GPU stopped processing a program", PROGRAM),
    45: Xid("a program was ended while it used the GPU", PROGRAM),
    48: Xid("an ECC error in its memory that could not be corrected", RESET, CRITICAL),
    61: Xid("its internal controller failed", RESET, CRITICAL),
    62: Xid("its internal controller halted", RESET, CRITICAL),
    63: Xid("a memory row or page was retired", "It takes effect at the next reset of the GPU."),
    64: Xid("a memory row or page could not be retired", REPLACE, CRITICAL),
    69: Xid("an illegal instruction in a kernel", PROGRAM),
    74: Xid("an NVLink error", LINK, CRITICAL),
    79: Xid("the GPU has fallen off the bus", REPLACE, CRITICAL),
    92: Xid("many ECC errors that were corrected", "Watch it; if it continues, replace the GPU."),
    94: Xid("an ECC error that was contained: only the program that used that memory ends", RESET, CRITICAL),
    95: Xid("an ECC error that was not contained", RESET, CRITICAL),
    109: Xid("switching between programs took too long", PROGRAM),
    119: Xid("the GPU's system processor does not answer", RESET, CRITICAL),
    120: Xid("the GPU's system processor failed", RESET, CRITICAL),
    136: Xid("training of an NVLink connection failed", LINK, CRITICAL),
    140: Xid("an ECC error in its memory that was not recovered", RESET, CRITICAL),
    143: Xid("the GPU could not be initialised", REPLACE, CRITICAL),
    145: Xid("an NVLink error", LINK, CRITICAL),
    149: Xid("an NVLink error", LINK, CRITICAL),
    154: Xid("the driver asks for the GPU to be recovered", RESET, CRITICAL),
}


def xid(code: int) -> Xid:
    return CATALOGUE.get(code, UNKNOWN)
