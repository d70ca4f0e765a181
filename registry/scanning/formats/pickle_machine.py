"""Follows the opcodes of a pickle and collects the names that it imports. Nothing is called.

Stack and memo are followed as the unpickler does it, but hold names and numbers only, so that a pickle cannot
show one name and import another. Anything that unpicklers may interpret differently ends the reading with an
error, never with a verdict.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass, field
from typing import IO, Any, Final

from registry.scanning.formats.imports import Name

_STRINGS = frozenset(
    {
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
        "UNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE",
        "BINUNICODE8",
    }
)
_NUMBERS = frozenset({"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"})
_CALLS = frozenset({"REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"})
# Picklers number their memo without gaps, so real pickles have hardly any keys outside of one run.
_MAX_SPARSE = 100_000
LONGEST_NAME = 1000


class _Mark:
    pass


MARK: Final = _Mark()
# What the stack holds: a short text, a number, a mark, or None for anything else.
Value = str | int | _Mark | None


class BrokenPickle(Exception):
    """The bytes are not a pickle, or a pickle that is cut off."""


@dataclass
class Pickle:
    """What a pickle does. `imports`: (module, name). `calls`: it calls something. `value`: its result, if
    that is a number or a short text. `ended`: it was read to its end."""

    imports: set[Name] = field(default_factory=set)
    calls: bool = False
    value: Value = None
    ended: bool = False


@dataclass
class _Memo:
    """The memo of an unpickler, with names and numbers only. Its keys are `first` to `next` (exclusive) and
    `sparse`."""

    values: dict[int, Value] = field(default_factory=dict)
    sparse: set[int] = field(default_factory=set)
    first: int = 0
    next: int = 0

    def put(self, key: int, value: Value) -> None:
        if not self.first <= key < self.next:
            if self.next == self.first:
                self.first, self.next = key, key + 1
            elif key == self.next and key not in self.sparse:
                # Each key is counted once, in the run or in `sparse`: `append` relies on the sum.
                self.next += 1
            else:
                self.sparse.add(key)
        if len(self.sparse) > _MAX_SPARSE:
            raise BrokenPickle("its memo is out of order")
        # Absence means "anything else": a value for each of millions of entries would fill the memory.
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def append(self, value: Value) -> None:
        # MEMOIZE uses the number of entries as its key.
        self.put(self.next - self.first + len(self.sparse), value)

    def get(self, key: int) -> Value:
        if not (self.first <= key < self.next or key in self.sparse):
            raise BrokenPickle("it takes something from its memo that is not there")
        return self.values.get(key)


class _Machine:
    def __init__(self, pickle: Pickle) -> None:
        self.pickle = pickle
        self.stack: list[Value] = []
        self.memo = _Memo()

    def step(self, opcode: Any, argument: Any) -> None:
        name = opcode.name
        if name in _CALLS:
            self.pickle.calls = True
        if name in _STRINGS:
            self.stack.append(_short(argument))
        elif name in _NUMBERS:
            self.stack.append(int(argument))
        elif name in ("GLOBAL", "INST"):
            # pickletools joins the two lines of the argument with a space.
            module, _, attribute = argument.partition(" ")
            self.pickle.imports.add((module, attribute))
            self._usual(opcode)
        elif name == "STACK_GLOBAL":
            attribute, module = self.pop(), self.pop()
            is_constant = isinstance(module, str) and isinstance(attribute, str)
            # A name that is computed while loading is stored as two empty texts, which `level_of` calls
            # dangerous.
            self.pickle.imports.add((str(module), str(attribute)) if is_constant else ("", ""))
            self.stack.append(None)
        elif name in ("EXT1", "EXT2", "EXT4"):
            # The names behind extension codes are registered only in the process that loads the pickle.
            self.pickle.imports.add(("copyreg", f"extension_{argument}"))
            self.stack.append(None)
        elif not self._memory(name, argument):
            self._usual(opcode)

    def _memory(self, name: str, argument: Any) -> bool:
        """Runs an opcode that moves values between stack and memo; returns False for all other opcodes."""
        if name == "MEMOIZE":
            self.memo.append(self.top())
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self.memo.put(int(argument), self.top())
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self.stack.append(self.memo.get(int(argument)))
        elif name == "DUP":
            self.stack.append(self.top())
        elif name == "MARK":
            self.stack.append(MARK)
        elif name == "POP":
            self._pop()
        elif name == "STOP":
            self.pickle.value, self.pickle.ended = self.pop(), True
        else:
            return False
        return True

    def _usual(self, opcode: Any) -> None:
        """Removes and adds as many values of the stack as the opcode does."""
        before = opcode.stack_before
        # Such an opcode removes all values down to the mark, and then what `stack_before` lists before it.
        if pickletools.markobject in before:
            while self._pop() is not MARK:
                pass
            before = before[: before.index(pickletools.markobject)]
        for _ in before:
            self.pop()
        self.stack.extend(None for _ in opcode.stack_after)

    def _pop(self) -> Value:
        """Removes and returns the top of the stack, which may be a mark."""
        if not self.stack:
            raise BrokenPickle("its stack is empty too early")
        return self.stack.pop()

    def top(self) -> Value:
        if not self.stack or self.stack[-1] is MARK:
            raise BrokenPickle("its stack is empty too early")
        return self.stack[-1]

    def pop(self) -> Value:
        value = self.top()
        self.stack.pop()
        return value


def follow(stream: IO[bytes], pickle: Pickle) -> None:
    """Reads one pickle and adds what it does to `pickle`, also if the pickle ends with BrokenPickle."""
    machine = _Machine(pickle)
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            machine.step(opcode, argument)
    except (ValueError, TypeError, IndexError, UnicodeError, OverflowError, EOFError) as error:
        raise BrokenPickle(str(error)[:100]) from error


def _short(text: object) -> str | None:
    # A text that streams.Skipped stands for arrives here as an empty one.
    return text if isinstance(text, str) and 0 < len(text) <= LONGEST_NAME else None
