"""Following the opcodes of a pickle with a stack that holds names only: which names does it import? Nothing
is called.

The stack and the memo are followed as the unpickler does it, so that a pickle cannot show one name and import
another. Whatever an unpickler might take differently ends the reading with an error, never with a verdict.
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
_MAX_SPARSE = 100_000
LONGEST_NAME = 1000


class _Mark:
    pass


MARK: Final = _Mark()
Value = str | int | _Mark | None
"""What the stack holds: a short text, a number, a mark, or None for anything else."""


class BrokenPickle(Exception):
    """The bytes are no pickle, or one that is cut off."""


@dataclass
class Pickle:
    """What one pickle does. `value` is what it makes where that is a number or a short text."""

    imports: set[Name] = field(default_factory=set)
    calls: bool = False
    value: Value = None
    ended: bool = False


@dataclass
class _Memo:
    """The memo, of which only names and numbers are kept; `first` to `next` are the keys that follow on each
    other."""

    values: dict[int, Value] = field(default_factory=dict)
    sparse: set[int] = field(default_factory=set)
    first: int = 0
    next: int = 0

    def put(self, key: int, value: Value) -> None:
        if not self.first <= key < self.next:
            if self.next == self.first:
                self.first, self.next = key, key + 1
            elif key == self.next and key not in self.sparse:
                self.next += 1
            else:
                self.sparse.add(key)
        if len(self.sparse) > _MAX_SPARSE:
            raise BrokenPickle("its memo is out of order")
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def append(self, value: Value) -> None:
        self.put(self.next - self.first + len(self.sparse), value)

    def get(self, key: int) -> Value:
        if not (self.first <= key < self.next or key in self.sparse):
            raise BrokenPickle("it takes something from its memo that is not there")
        return self.values.get(key)


class _Machine:
    def __init__(self, found: Pickle) -> None:
        self.found = found
        self.stack: list[Value] = []
        self.memo = _Memo()

    def step(self, opcode: Any, argument: Any) -> None:
        name = opcode.name
        if name in _CALLS:
            self.found.calls = True
        if name in _STRINGS:
            self.stack.append(_short(argument))
        elif name in _NUMBERS:
            self.stack.append(int(argument))
        elif name in ("GLOBAL", "INST"):
            module, _, attribute = argument.partition(" ")
            self.found.imports.add((module, attribute))
            self._usual(opcode)
        elif name == "STACK_GLOBAL":
            attribute, module = self.pop(), self.pop()
            is_known = isinstance(module, str) and isinstance(attribute, str)
            self.found.imports.add((str(module), str(attribute)) if is_known else ("", ""))
            self.stack.append(None)
        elif name in ("EXT1", "EXT2", "EXT4"):
            self.found.imports.add(("copyreg", f"extension_{argument}"))
            self.stack.append(None)
        elif not self._memory(name, argument):
            self._usual(opcode)

    def _memory(self, name: str, argument: Any) -> bool:
        """Do what moves values between stack and memo; False where the opcode is another."""
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
            self._taken()
        elif name == "STOP":
            self.found.value, self.found.ended = self.pop(), True
        else:
            return False
        return True

    def _usual(self, opcode: Any) -> None:
        """Take from the stack and put onto it as many values as the opcode does."""
        before = opcode.stack_before
        if pickletools.markobject in before:
            while self._taken() is not MARK:
                pass
            before = before[: before.index(pickletools.markobject)]
        for _ in before:
            self.pop()
        self.stack.extend(None for _ in opcode.stack_after)

    def _taken(self) -> Value:
        """Take one value or mark."""
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


def follow(stream: IO[bytes], found: Pickle) -> None:
    """Read one pickle and add to `found` what it imports, also where it ends with BrokenPickle."""
    machine = _Machine(found)
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            machine.step(opcode, argument)
    except (ValueError, TypeError, IndexError, UnicodeError, OverflowError, EOFError) as error:
        raise BrokenPickle(str(error)[:100]) from error


def _short(text: Any) -> str | None:
    return text if isinstance(text, str) and 0 < len(text) <= LONGEST_NAME else None
