"""Scans files that contain one or several pickles, whatever their names; also PyTorch's oldest format,
pickles followed by weights."""

from __future__ import annotations

from typing import IO, cast

from registry.scanning.formats.imports import Name, judge_imports, level_of
from registry.scanning.formats.pickle_machine import BrokenPickle, Pickle, follow
from registry.scanning.formats.source import Source
from registry.scanning.streams import Skimmed
from registry.scanning.verdict_names import DANGEROUS, NOT_SCANNED, Verdict

NAMES = (".pkl", ".pickle", ".joblib", ".dill", ".cloudpickle", ".sav", ".p", ".pck", ".pcl")
# The first of the pickles in files that torch.save wrote before its zip format.
TORCH_MAGIC = 0x1950A86A20F9469CFC6C
# Magic number, protocol, machine, model, keys of the weights. What follows is read as numbers only.
TORCH_PICKLES = 5
RAW_DATA = "; what follows is none, such as the raw numbers of an array"
# Behind it joblib writes an array's numbers into the midst of the pickle.
JOBLIB_ARRAY = ("joblib.numpy_pickle", "NumpyArrayWrapper")
PARTLY = "Only a part of it could be read as a pickle{}."


def scan_pickles(source: Source) -> Verdict:
    """Judges a file that is a pickle by its first bytes or its name."""
    return _verdict(*_read(source))


def scan_if_pickle(source: Source) -> Verdict | None:
    """Judges a file that may be a pickle of protocol 0 or 1, which have no signature; returns None if it is
    no pickle.

    Ordinary text may begin with a few valid opcodes. It counts as a pickle if it imports something and is
    complete, calls what it imports, or imports something dangerous.
    """
    pickle, is_whole, why = _read(source)
    plausible = [item for item in pickle.imports if _is_plausible(item)]
    if any(level_of(*item) == DANGEROUS for item in plausible) or (
        plausible and (pickle.ended or pickle.calls)
    ):
        return _verdict(pickle, is_whole, why)
    return _verdict(pickle, is_whole, why) if is_whole and pickle.ended else None


def _is_plausible(item: Name) -> bool:
    """Whether module and name are identifiers of Python, which words of a text or random numbers rarely
    are."""
    return all(part.isidentifier() for name in item for part in name.split("."))


def _read(source: Source) -> tuple[Pickle, bool, str]:
    """Returns what all pickles of the file do together, whether the whole file was read, and why not."""
    pickle = Pickle()
    with source.open() as file:
        stream = Skimmed(file)
        count, is_torch = 0, False
        while not (is_torch and count == TORCH_PICKLES):
            if count and not stream.read(1):
                return pickle, not is_torch, "it ends before its weights" if is_torch else ""
            if count:
                stream.step_back()
            try:
                follow(cast("IO[bytes]", stream), pickle)
            except BrokenPickle as error:
                is_between = bool(count) or JOBLIB_ARRAY in pickle.imports
                return pickle, False, RAW_DATA if is_between else f": {error}"
            count += 1
            is_torch = is_torch or (count == 1 and pickle.value == TORCH_MAGIC)
    return pickle, True, ""


def _verdict(pickle: Pickle, is_whole: bool, why: str) -> Verdict:
    judged = judge_imports(pickle.imports)
    if judged.verdict == DANGEROUS or is_whole:
        return judged
    return Verdict(NOT_SCANNED, judged.findings, PARTLY.format(why))
