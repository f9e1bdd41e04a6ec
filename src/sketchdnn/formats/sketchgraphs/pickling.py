"""Write operations as the pickle that the official library reads, opcode by opcode.

The names in the pickle are those of the official classes, which need not be installed: their own pickler would want to
import them. The opcodes are the ones its files hold: NEWOBJ for an operation, REDUCE for a member of an enumeration.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from .ops import LONGEST_TEXT, Op, SubnodeType

_MODULE_OF = {
    "NodeOp": "sketchgraphs.data.sequence",
    "EdgeOp": "sketchgraphs.data.sequence",
    "EntityType": "sketchgraphs.data._entity",
    "SubnodeType": "sketchgraphs.data._entity",
    "ConstraintType": "sketchgraphs.data._constraint",
}
_TUPLES = {1: b"\x85", 2: b"\x86", 3: b"\x87"}
_FIRST_SUBNODE = min(SubnodeType)


def dump_ops(ops: Iterable[Op]) -> bytes:
    """One sequence: a list of NodeOp and EdgeOp."""
    pickle = _Pickle()
    pickle.emit(b"]")
    pickle.memoize()
    pickle.emit(b"(")
    for op in ops:
        if op.step is None:
            pickle.name("NodeOp")
            pickle.member("SubnodeType" if op.start >= _FIRST_SUBNODE else "EntityType", op.start)
            pickle.dictionary(op.stop)
            pickle.emit(_TUPLES[2])
        else:
            pickle.name("EdgeOp")
            pickle.member("ConstraintType", op.start)
            pickle.integers(op.stop)
            pickle.dictionary(op.step)
            pickle.emit(_TUPLES[3])
        pickle.memoize()
        pickle.emit(b"\x81")
        pickle.memoize()
    pickle.emit(b"e")
    return pickle.finish()


def dump_header(entries: Mapping[str, tuple[int, int, int]]) -> bytes:
    """The header of a dictionary: where each blob lies, and what it is."""
    pickle = _Pickle()
    pickle.dictionary(entries)
    return pickle.finish()


class _Pickle:
    """A pickle in the making, and what has been said already and need only be recalled."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._memo: dict[object, int] = {}
        self._memoized = 0

    def finish(self) -> bytes:
        body = b"".join((*self._parts, b"."))
        return b"\x80\x04\x95" + struct.pack("<Q", len(body)) + body

    def emit(self, opcode: bytes) -> None:
        self._parts.append(opcode)

    def memoize(self, key: object = None) -> None:
        """The value on the stack gets the next number; with a key it can be recalled."""
        self.emit(b"\x94")
        if key is not None:
            self._memo[key] = self._memoized
        self._memoized += 1

    def recall(self, key: object) -> bool:
        number = self._memo.get(key)
        if number is None:
            return False
        self.emit(b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number))
        return True

    def name(self, name: str) -> None:
        key = (name,)
        if not self.recall(key):
            self.text(_MODULE_OF[name])
            self.text(name)
            self.emit(b"\x93")
            self.memoize(key)

    def member(self, enumeration: str, code: int) -> None:
        key = (enumeration, code)
        if not self.recall(key):
            self.name(enumeration)
            self.integers((code,))
            self.emit(b"R")
            self.memoize(key)

    def dictionary(self, items: Mapping[str, Any]) -> None:
        self.emit(b"}")
        self.memoize()
        if items:
            self.emit(b"(")
            for key, value in items.items():
                self.text(key)
                self.value(value)
            self.emit(b"u")

    def integers(self, numbers: tuple[int, ...]) -> None:
        if len(numbers) > 3:
            self.emit(b"(")
        for number in numbers:
            self.integer(number)
        self.emit(_TUPLES.get(len(numbers), b"t"))
        self.memoize()

    def value(self, value: bool | float | str | tuple[int, ...]) -> None:
        match value:
            case bool():
                self.emit(b"\x88" if value else b"\x89")
            case int():
                self.integer(value)
            case float():
                self.emit(b"G" + struct.pack(">d", value))
            case str():
                self.text(value)
            case tuple():
                self.integers(value)

    def integer(self, number: int) -> None:
        if 0 <= number < 1 << 8:
            self.emit(b"K" + struct.pack("<B", number))
        elif 0 <= number < 1 << 16:
            self.emit(b"M" + struct.pack("<H", number))
        elif -(1 << 31) <= number < 1 << 31:
            self.emit(b"J" + struct.pack("<i", number))
        else:
            self.emit(b"\x8a\x08" + struct.pack("<q", number))

    def text(self, text: str) -> None:
        if not self.recall(text):
            data = text.encode("utf-8", "surrogatepass")
            length = len(data)
            self.emit((b"\x8c" + bytes([length]) if length < 256 else b"X" + struct.pack("<I", length)) + data)
            if length <= LONGEST_TEXT:  # a longer one may be read only where it stands
                self.memoize(text)
