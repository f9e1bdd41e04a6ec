"""The operations of a SketchGraphs sequence, read from the small part of pickle that they are stored in.

A pickle is a program, so a file's is read in two steps. First a regular expression follows it from opcode to opcode and
admits only the handful that a plain list of operations needs: nothing that sets attributes, fills the memo at a place
of its choice or asks for registered code passes. Then Python's unpickler runs it with an allow-list of five names,
which stand for functions that check what they are given.

Whatever a pickle uses as a key is hashed, and compared with other keys. Hashing nested tuples can take forever, so the
arguments of an operation are checked as it is made: they hold a dictionary, which cannot be hashed. What is left to
hash are numbers, tuples of at most `LONGEST_TUPLE` integers and texts of at most `LONGEST_TEXT` bytes; a longer one is
used once, where it stands.
"""

from __future__ import annotations

import io
import operator
import pickle
import pickletools
import re
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NoReturn

# An operation is held by a `slice`: the one built-in that keeps three values of any kind, is made without running
# Python, and cannot be altered. Millions of sequences are read this way.
#   node: slice(label, params)               label is an EntityType or a SubnodeType
#   edge: slice(label, references, params)   label is a code of `constraints`; references count nodes from 0
Op = slice


class EntityType(IntEnum):
    """What a node is."""

    POINT = 0
    LINE = 1
    CIRCLE = 2
    ELLIPSE = 3
    SPLINE = 4
    CONIC = 5
    ARC = 6
    EXTERNAL = 7
    STOP = 8
    UNKNOWN = 9


class SubnodeType(IntEnum):
    """Which part of an entity a node is."""

    START = 101
    END = 102
    CENTER = 103


# Nodes that are no entity of the sketch.
STRUCTURE = frozenset((EntityType.EXTERNAL, EntityType.STOP, *SubnodeType))


class PickleError(ValueError):
    """A pickle that is damaged or asks for more than plain data; the text is a reason to count."""


def load_ops(data: bytes) -> list[Op]:
    """The operations of one sequence; `PickleError` for anything else."""
    ops = _load(_OpsUnpickler, data)
    if type(ops) is list and set(map(type, ops)) == {slice}:
        return ops
    raise PickleError("a sequence that is not a list of operations")


def load_plain(data: bytes) -> object:
    """Plain values: numbers, text, tuples of numbers, lists, dictionaries. No name of any module is allowed."""
    return _load(_PlainUnpickler, data)


# What few sequences exceed. Comparing texts of this size costs no more than a look-up.
LONGEST_TUPLE = 255
LONGEST_TEXT = 4096


class _Node:
    def __new__(cls, label: object, params: object) -> Op:  # type: ignore[misc]
        if type(label) is int and type(params) is dict:
            return slice(label, params)
        raise pickle.UnpicklingError


class _Edge:
    def __new__(cls, label: object, references: Any, params: object) -> Op:  # type: ignore[misc]
        # The arguments of another operation, which would nest, end in a dictionary; whoever follows references looks
        # at all of them.
        if type(label) is int and type(references[-1]) is int and type(params) is dict:
            return slice(label, references, params)
        raise pickle.UnpicklingError


Allowed = dict[tuple[str, str], Callable[..., Any]]
# Enumerations become plain numbers: a code that we do not know is refused where it is used.
ALLOWED: Allowed = {
    ("sketchgraphs.data.sequence", "NodeOp"): _Node,
    ("sketchgraphs.data.sequence", "EdgeOp"): _Edge,
    ("sketchgraphs.data._entity", "EntityType"): operator.index,
    ("sketchgraphs.data._entity", "SubnodeType"): operator.index,
    ("sketchgraphs.data._constraint", "ConstraintType"): operator.index,
}


class _OpsUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise PickleError("a sequence that asks to run code") from None


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise PickleError("a header that asks to run code")


def _load(unpickler: type[pickle.Unpickler], data: bytes) -> Any:
    _check_opcodes(data)
    try:
        return unpickler(io.BytesIO(data)).load()
    except PickleError:
        raise
    except _DAMAGE as error:
        raise PickleError("a damaged pickle") from error


_DAMAGE = (
    pickle.UnpicklingError,
    EOFError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    OverflowError,
    MemoryError,
)

# The opcodes, as a regular expression. Possessive throughout (`++`): there is one way to read a pickle.
_FRAME = rb"(?:\x95.{8})?+"  # may stand between any two opcodes of a long pickle
_MEMO = rb"\x94?+" + _FRAME
_INT = rb"(?:K.|M..|J.{4}|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8}))" + _FRAME
_SHORT_TEXT = b"|".join(b"\\x%02x.{%d}" % (length, length) for length in range(32))
_TOKENS = re.compile(
    b"(?s:"
    + b"|".join(
        (
            rb"h.",  # what the memo holds
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


def _check_opcodes(data: bytes) -> None:
    """Refuse a pickle with any opcode that plain operations do not need, before it is run."""
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
    memoized, integers, last_is_long = 0, -1, False  # integers since a mark; −1 if there was something else
    long: set[object] = set()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            match opcode.name:
                case "FRAME":
                    continue
                case "MEMOIZE":
                    if last_is_long:
                        long.add(memoized)
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


_INTEGERS = frozenset(("BININT1", "BININT2", "BININT", "LONG1"))
