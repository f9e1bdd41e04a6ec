"""The operations of a SketchGraphs sequence, read from and written to the small part of pickle that they are stored in.

A pickle is a program, so reading takes two steps. First a regular expression follows it from opcode to opcode and
admits only those that a plain list of operations needs: nothing that sets attributes, writes to a chosen place of the
memo or calls registered code passes. Then Python's unpickler runs it with an allow-list of five names, which stand for
functions that check their arguments.

Every key in a pickle is hashed and compared with other keys. Hashing nested tuples can take forever, so the arguments
of an operation are checked when it is made: they hold a dictionary, which cannot be hashed. All other keys are numbers,
tuples of at most `LONGEST_TUPLE` integers and texts of at most `LONGEST_TEXT` bytes; a longer one is used once.

Pickles are written opcode by opcode, with the names of the official classes, which need not be installed.
"""

from __future__ import annotations

import io
import operator
import pickle
import pickletools
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, NoReturn

# An operation is a `slice`: the one built-in that holds three values of any kind, is created without running Python
# code, and is immutable. Millions of sequences are read this way.
#   node: slice(label, params)               label is an EntityType or a SubnodeType
#   edge: slice(label, references, params)   label is a code of `constraints`; references count nodes from 0
Op = slice


class EntityType(IntEnum):
    """The type of a node that is an entity or marks an end."""

    POINT, LINE, CIRCLE, ELLIPSE, SPLINE, CONIC, ARC, EXTERNAL, STOP, UNKNOWN = range(10)


class SubnodeType(IntEnum):
    """The type of a node that is a part of an entity."""

    START, END, CENTER = range(101, 104)


SUBNODE = 101  # an edge from a part to its entity: structure, not a constraint
# Nodes that are no entity of the sketch.
STRUCTURE = frozenset((EntityType.EXTERNAL, EntityType.STOP, *SubnodeType))
# Few sequences exceed these. Comparing texts of this size costs no more than a look-up.
LONGEST_TUPLE = 255
LONGEST_TEXT = 4096


class PickleError(ValueError):
    """A pickle that is damaged or holds more than plain data; the text is a reason to count."""


def load_ops(data: bytes) -> list[Op]:
    """The operations of one sequence; `PickleError` for anything else."""
    ops = _load(_OpsUnpickler, data)
    if type(ops) is list and set(map(type, ops)) == {slice}:
        return ops
    raise PickleError("a sequence that is not a list of operations")


def load_plain(data: bytes) -> object:
    """Plain values: numbers, text, tuples of numbers, lists, dictionaries. No name of any module is allowed."""
    return _load(_PlainUnpickler, data)


def dump_ops(ops: Iterable[Op]) -> bytes:
    """The pickle of one sequence, a list of NodeOp and EdgeOp, with the opcodes of the official files."""
    writer = _PickleWriter()
    writer.memoize(b"]")
    writer.emit(b"(")
    for op in ops:
        if op.step is None:
            writer.name("NodeOp")
            writer.member("SubnodeType" if op.start >= SubnodeType.START else "EntityType", op.start)
            writer.dictionary(op.stop)
        else:
            writer.name("EdgeOp")
            writer.member("ConstraintType", op.start)
            writer.integers(op.stop)
            writer.dictionary(op.step)
        writer.memoize(_TUPLES[2 if op.step is None else 3])
        writer.memoize(b"\x81")
    writer.emit(b"e")
    return writer.finish()


def dump_header(entries: Mapping[str, tuple[int, int, int]]) -> bytes:
    """The pickle of a dictionary's header: the place and type of each blob."""
    writer = _PickleWriter()
    writer.dictionary(entries)
    return writer.finish()


class _Node:
    def __new__(cls, label: object, params: object) -> Op:  # type: ignore[misc]
        if type(label) is int and type(params) is dict:
            return slice(label, params)
        raise pickle.UnpicklingError


class _Edge:
    def __new__(cls, label: object, references: Any, params: object) -> Op:  # type: ignore[misc]
        # The arguments of a nested operation would end in a dictionary. The reader of references checks them all.
        if type(label) is int and type(references[-1]) is int and type(params) is dict:
            return slice(label, references, params)
        raise pickle.UnpicklingError


# Enumerations become plain numbers; an unknown code is refused where it is used.
ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("sketchgraphs.data.sequence", "NodeOp"): _Node,
    ("sketchgraphs.data.sequence", "EdgeOp"): _Edge,
    ("sketchgraphs.data._entity", "EntityType"): operator.index,
    ("sketchgraphs.data._entity", "SubnodeType"): operator.index,
    ("sketchgraphs.data._constraint", "ConstraintType"): operator.index,
}
_MODULES = {name: module for module, name in ALLOWED}


class _OpsUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        if (module, name) not in ALLOWED:
            raise PickleError("a sequence that asks to run code")
        return ALLOWED[module, name]


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise PickleError("a header that asks to run code")


_UNPICKLING_ERRORS = (pickle.UnpicklingError, EOFError, TypeError, ValueError, LookupError, AttributeError)


def _load(unpickler: type[pickle.Unpickler], data: bytes) -> Any:
    _check_opcodes(data)
    try:
        return unpickler(io.BytesIO(data)).load()
    except PickleError:
        raise
    except (*_UNPICKLING_ERRORS, OverflowError, MemoryError) as error:
        raise PickleError("a damaged pickle") from error


# The opcodes, as a regular expression. Possessive throughout (`++`), so that there is one way to match a pickle.
_FRAME = rb"(?:\x95.{8})?+"  # may stand between any two opcodes of a long pickle
_MEMO = rb"\x94?+" + _FRAME
_INT = rb"(?:K.|M..|J.{4}|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8}))" + _FRAME
_SHORT_TEXT = b"|".join(b"\\x%02x.{%d}" % (length, length) for length in range(32))
_TOKENS = re.compile(
    b"(?s:"
    + b"|".join(
        (
            rb"h.",  # a value of the memo
            # An integer; one, two or three in a tuple; a tuple of one may be the argument of an enumeration.
            _INT + b"(?:\x85%b(?:R%b)?+|%b(?:\x86%b|%b\x87%b))?+" % (_MEMO, _MEMO, _INT, _MEMO, _INT, _MEMO),
            rb"[\x86\x87]%b\x81%b" % (_MEMO, _MEMO),  # an operation from its arguments
            rb"[}\]]" + _MEMO,  # an empty dictionary or list
            rb"\((?:(?:%b){1,%d}+t%b)?+" % (_INT, LONGEST_TUPLE, _MEMO),  # a mark, or a tuple of several integers
            rb"[usea\x88\x89N]",  # fill a dictionary or list; true, false, none
            rb"G.{8}",
            rb"\x8c(?:%b)%b" % (_SHORT_TEXT, _MEMO),
            rb"\x93" + _MEMO,  # one of the allowed names
            rb"j.{4}",
            rb"\x94",
            rb"\x95.{8}",
        )
    ).join((b"(?:", b")*+)"))
)
_STOP, _SHORT_STRING, _STRING, _TUPLE = b".", b"\x8c", b"X", b"t"
_INTEGERS = frozenset(("BININT1", "BININT2", "BININT", "LONG1"))


def _check_opcodes(data: bytes) -> None:
    """Refuse a pickle with any opcode that plain operations do not need, before it runs."""
    at = 2 if data[:2] in (b"\x80\x04", b"\x80\x05") else len(data)
    has_long = False
    while match := _TOKENS.match(data, at):
        at = match.end()
        opcode = data[at : at + 1]
        if opcode == _SHORT_STRING and at + 1 < len(data):
            at += 2 + data[at + 1]
        elif opcode == _STRING:
            length = int.from_bytes(data[at + 1 : at + 5], "little")
            at += 5 + length
            has_long |= length > LONGEST_TEXT
        elif opcode == _TUPLE:
            at += 1
            has_long = True
        elif opcode == _STOP and at + 1 == len(data):
            if has_long:
                _check_long(data)
            return
        else:
            break
    raise PickleError("a pickle that is more than plain data" if at < len(data) else "a pickle that is cut short")


def _check_long(data: bytes) -> None:
    """Refuse a pickle that recalls a long tuple or text, or makes a tuple of anything but integers."""
    memoized, integers, last_is_long = 0, -1, False  # integers since a mark; −1 after anything else
    long: set[object] = set()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            match opcode.name:
                case "FRAME":
                    continue
                case "MEMOIZE":
                    long.update([memoized] * last_is_long)
                    memoized += 1
                case "BINGET" | "LONG_BINGET" if argument in long:
                    raise PickleError("a long tuple or text that is recalled")
                case "TUPLE" if integers < 1:
                    raise PickleError("a pickle that is more than plain data")
            last_is_long = (opcode.name == "TUPLE" and integers > LONGEST_TUPLE) or (
                opcode.name == "BINUNICODE" and len(str(argument).encode(errors="surrogatepass")) > LONGEST_TEXT
            )
            is_integer = opcode.name in _INTEGERS and integers >= 0
            integers = 0 if opcode.name == "MARK" else integers + 1 if is_integer else -1
    except PickleError:
        raise
    except ValueError as error:
        raise PickleError("a damaged pickle") from error


_TUPLES = {1: b"\x85", 2: b"\x86", 3: b"\x87"}


class _PickleWriter:
    """Builds a pickle of protocol 4 and recalls values that it already holds."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._memo: dict[object, int] = {}
        self._memoized = 0

    def finish(self) -> bytes:
        body = b"".join((*self._parts, b"."))
        return b"\x80\x04\x95" + struct.pack("<Q", len(body)) + body

    def emit(self, opcode: bytes) -> None:
        self._parts.append(opcode)

    def memoize(self, opcode: bytes, key: object = None) -> None:
        """Write an opcode, and give the value that it makes the next number; with a key it can be recalled."""
        self.emit(opcode + b"\x94")
        if key is not None:
            self._memo[key] = self._memoized
        self._memoized += 1

    def recall(self, key: object) -> bool:
        if (number := self._memo.get(key)) is not None:
            self.emit(b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number))
        return number is not None

    def name(self, name: str) -> None:
        key = (name,)
        if not self.recall(key):
            self.text(_MODULES[name])
            self.text(name)
            self.memoize(b"\x93", key)

    def member(self, enumeration: str, code: int) -> None:
        key = (enumeration, code)
        if not self.recall(key):
            self.name(enumeration)
            self.integers((code,))
            self.memoize(b"R", key)

    def dictionary(self, items: Mapping[str, Any]) -> None:
        self.memoize(b"}")
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
        self.memoize(_TUPLES.get(len(numbers), b"t"))

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
            opcode = (b"\x8c" + bytes([length]) if length < 256 else b"X" + struct.pack("<I", length)) + data
            if length <= LONGEST_TEXT:
                self.memoize(opcode, text)
            else:  # it may not be recalled
                self.emit(opcode)
