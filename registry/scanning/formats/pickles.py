"""Files that are pickles, one or several, whatever their names; and PyTorch's oldest format, pickles with
weights behind."""

from __future__ import annotations

from typing import IO, cast

from registry.scanning.formats.imports import Name, judge, level_of
from registry.scanning.formats.pickle_machine import BrokenPickle, Pickle, follow
from registry.scanning.formats.source import Source
from registry.scanning.streams import Skimmed
from registry.scanning.verdict_names import DANGEROUS, NOT_SCANNED, Verdict

NAMES = (".pkl", ".pickle", ".joblib", ".dill", ".cloudpickle", ".sav", ".p", ".pck", ".pcl")
TORCH_MAGIC = 0x1950A86A20F9469CFC6C
TORCH_PICKLES = 5
"""Magic number, protocol, machine, model, keys of the weights. What follows is read as numbers only."""
RAW_DATA = "; what follows is none, such as the raw numbers of an array"
JOBLIB_ARRAY = ("joblib.numpy_pickle", "NumpyArrayWrapper")
"""Behind it joblib writes an array's numbers into the midst of the pickle."""
PARTLY = "Only a part of it could be read as a pickle{}."


def scan_pickles(source: Source) -> Verdict:
    """Judge a file that is a pickle by its beginning or its name."""
    return _verdict(*_read(source))


def scan_if_pickle(source: Source) -> Verdict | None:
    """Judge a file that may be a pickle of protocol 0 or 1, which have no signature; None where it is none.

    Ordinary text may begin with a few valid opcodes. It counts as a pickle where it imports something and is
    complete, calls what it imports, or imports something dangerous."""
    found, is_whole, why = _read(source)
    plausible = [item for item in found.imports if _is_plausible(item)]
    if any(level_of(*item) == DANGEROUS for item in plausible) or (
        plausible and (found.ended or found.calls)
    ):
        return _verdict(found, is_whole, why)
    return _verdict(found, is_whole, why) if is_whole and found.ended else None


def _is_plausible(item: Name) -> bool:
    """Whether both could be names in Python, which the words of a text or random numbers hardly are."""
    return all(part.isidentifier() for name in item for part in name.split("."))


def _read(source: Source) -> tuple[Pickle, bool, str]:
    """What all pickles of the file do together, whether all of the file was read, and why not."""
    found = Pickle()
    with source.open() as file:
        stream = cast("IO[bytes]", Skimmed(file))
        count, is_torch = 0, False
        while not (is_torch and count == TORCH_PICKLES):
            if count and not stream.read(1):
                return found, not is_torch, "it ends before its weights" if is_torch else ""
            if count:
                stream.seek(-1, 1)
            try:
                follow(stream, found)
            except BrokenPickle as error:
                is_between = bool(count) or JOBLIB_ARRAY in found.imports
                return found, False, RAW_DATA if is_between else f": {error}"
            count += 1
            is_torch = is_torch or (count == 1 and found.value == TORCH_MAGIC)
    return found, True, ""


def _verdict(found: Pickle, is_whole: bool, why: str) -> Verdict:
    judged = judge(found.imports)
    if judged.verdict == DANGEROUS or is_whole:
        return judged
    return Verdict(NOT_SCANNED, judged.findings, PARTLY.format(why))
