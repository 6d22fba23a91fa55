"""Sixty-four numbers side by side, as LLVM's intermediate language has them.

They name no instruction set: LLVM lowers vectors to whatever the machine has.  Imported when a
kernel that uses them is compiled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

from whereish.solvers.geodesic.lanes import LANES

__all__ = ["FLOATS", "INTS", "WORDS", "Floats", "call", "data", "halves", "load", "splat", "store"]

_I32 = ir.IntType(32)
WORDS = ir.VectorType(ir.IntType(16), LANES)
FLOATS = ir.VectorType(ir.FloatType(), LANES)
INTS = ir.VectorType(_I32, LANES)

_SUFFIX = {WORDS: "i16", FLOATS: "f32", INTS: "i32"}
_BYTES = {WORDS: 2, FLOATS: 4, INTS: 4}  # numpy aligns to the element only


def data(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """Where the elements of an array begin."""
    return context.make_array(array_type)(context, builder, array).data


def _address(builder: Any, base: Any, index: Any, vector: Any) -> Any:
    return builder.bitcast(builder.gep(base, [index]), vector.as_pointer())


def load(builder: Any, base: Any, index: Any, vector: Any) -> Any:
    """The vector that begins at an element."""
    value = builder.load(_address(builder, base, index, vector))
    value.align = _BYTES[vector]
    return value


def store(builder: Any, value: Any, base: Any, index: Any) -> None:
    """Write a vector to where an element begins."""
    written = builder.store(value, _address(builder, base, index, value.type))
    written.align = _BYTES[value.type]


def splat(builder: Any, scalar: Any, vector: Any) -> Any:
    """A number in every lane."""
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(
        one, ir.Constant(vector, ir.Undefined), ir.Constant(INTS, [0] * LANES)
    )


def call(builder: Any, name: str, vector: Any, *arguments: Any) -> Any:
    """An operation of LLVM on vectors of one type."""
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(vector, [vector] * len(arguments)),
        f"llvm.{name}.v{LANES}{_SUFFIX[vector]}",
    )
    return builder.call(function, arguments)


def halves(builder: Any, vector: Any) -> tuple[Any, Any]:
    """The first and the second half of the lanes."""
    width = vector.type.count // 2
    nothing, lanes = ir.Constant(vector.type, ir.Undefined), ir.VectorType(_I32, width)
    return tuple(
        builder.shuffle_vector(
            vector, nothing, ir.Constant(lanes, list(range(first, first + width)))
        )
        for first in (0, width)
    )


class Floats:
    """Numbers of single precision in all lanes, with arithmetic that reads as such."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    @classmethod
    def at(cls, builder: Any, base: Any, index: Any) -> Floats:
        """Those that begin at an element."""
        return cls(builder, load(builder, base, index, FLOATS))

    @classmethod
    def of_words(cls, builder: Any, base: Any, index: Any) -> Floats:
        """The integers of 16 bits that begin at an element."""
        return cls(builder, builder.uitofp(load(builder, base, index, WORDS), FLOATS))

    @classmethod
    def all(cls, builder: Any, scalar: Any) -> Floats:
        """One number in every lane: a constant, or one that code computes."""
        if isinstance(scalar, float):
            return cls(builder, ir.Constant(FLOATS, [scalar] * LANES))
        return cls(builder, splat(builder, scalar, FLOATS))

    def __add__(self, other: Floats) -> Floats:
        return Floats(self.builder, self.builder.fadd(self.value, other.value))

    def __sub__(self, other: Floats) -> Floats:
        return Floats(self.builder, self.builder.fsub(self.value, other.value))

    def __mul__(self, other: Floats) -> Floats:
        return Floats(self.builder, self.builder.fmul(self.value, other.value))

    def __truediv__(self, other: Floats) -> Floats:
        return Floats(self.builder, self.builder.fdiv(self.value, other.value))

    def times(self, factor: Floats, plus: Floats) -> Floats:
        """self·factor + plus, rounded once where the machine can."""
        parts = self.value, factor.value, plus.value
        return Floats(self.builder, call(self.builder, "fmuladd", FLOATS, *parts))

    def polynomial(self, coefficients: tuple[float, ...]) -> Floats:
        """That of these coefficients, highest power first, by Horner's rule."""
        value = Floats.all(self.builder, coefficients[0])
        for coefficient in coefficients[1:]:
            value = value.times(self, Floats.all(self.builder, coefficient))
        return value

    def store(self, base: Any, index: Any) -> None:
        """Write them to where an element begins."""
        store(self.builder, self.value, base, index)

    def bits(self) -> Any:
        """Their 32 bits each, as integers."""
        return self.builder.bitcast(self.value, INTS)
