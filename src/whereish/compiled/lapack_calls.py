"""Calls of BLAS and LAPACK by address, for numba; imported when a kernel that uses one is compiled.

The address is a number that the kernel is given (:func:`whereish.solvers.lapack.address`): it
differs from process to process, so that it must not be part of compiled code that is kept.
Matrices are (n, n) arrays of doubles in one piece; LAPACK reads a C-ordered one as its
transpose, of which only the upper half, below the diagonal in C's order, is meant.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["call_on_matrix", "call_on_packed", "call_on_rows", "call_on_system"]

_CHAR, _INT = ir.IntType(8), ir.IntType(32)


def _array(context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, Any]:
    """The address of an array's numbers, and the address of its first side as a C int."""
    array = context.make_array(kind)(context, builder, value)
    side = builder.trunc(cgutils.unpack_tuple(builder, array.shape)[0], _INT)
    return array.data, cgutils.alloca_once_value(builder, side)


def _call(builder: Any, address: Any, arguments: list[Any]) -> None:
    """Call the function at an address, which gives nothing back."""
    signature = ir.FunctionType(ir.VoidType(), [one.type for one in arguments])
    builder.call(builder.inttoptr(address, signature.as_pointer()), arguments)


def _upper(builder: Any) -> Any:
    return cgutils.alloca_once_value(builder, ir.Constant(_CHAR, ord("U")))


def _zero(builder: Any) -> Any:
    return cgutils.alloca_once_value(builder, ir.Constant(_INT, 0))


@intrinsic  # type: ignore[untyped-decorator]
def call_on_matrix(context: Any, address: Any, matrix: Any) -> Any:
    """dpotrf or dpotri, in place; 0, or where it failed."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data, n = _array(context, builder, signature.args[1], values[1])
        info = _zero(builder)
        _call(builder, values[0], [_upper(builder), n, data, n, info])
        return builder.load(info)

    return types.int32(types.int64, matrix), code


@intrinsic  # type: ignore[untyped-decorator]
def call_on_packed(context: Any, address: Any, factor: Any, right: Any, transposed: Any) -> Any:
    """dtpsv with a packed factor R, or its transpose, for one right-hand side, in place."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(signature.args[1])(context, builder, values[1]).data
        solution, n = _array(context, builder, signature.args[2], values[2])
        letters = [ir.Constant(_CHAR, ord(letter)) for letter in "TN"]
        wanted = builder.icmp_signed("!=", values[3], values[3].type(0))
        how = cgutils.alloca_once_value(builder, builder.select(wanted, *letters))
        plain = cgutils.alloca_once_value(builder, letters[1])
        one = cgutils.alloca_once_value(builder, ir.Constant(_INT, 1))
        arguments = [_upper(builder), how, plain, n, data, solution, one]
        _call(builder, values[0], arguments)
        return context.get_dummy_value()

    return types.void(types.int64, factor, right, types.boolean), code


@intrinsic  # type: ignore[untyped-decorator]
def call_on_rows(context: Any, address: Any, rows: Any, out: Any) -> Any:
    """dsyrk: write the half below the diagonal of rows' rows, for C-ordered (count, n) rows."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data, count = _array(context, builder, signature.args[1], values[1])
        product, n = _array(context, builder, signature.args[2], values[2])
        plain = cgutils.alloca_once_value(builder, ir.Constant(_CHAR, ord("N")))
        one, zero = (
            cgutils.alloca_once_value(builder, ir.Constant(ir.DoubleType(), value))
            for value in (1.0, 0.0)
        )
        arguments = [_upper(builder), plain, n, count, one, data, n, zero, product, n]
        _call(builder, values[0], arguments)
        return context.get_dummy_value()

    return types.void(types.int64, rows, out), code


@intrinsic  # type: ignore[untyped-decorator]
def call_on_system(context: Any, address: Any, matrix: Any, pivots: Any, right: Any) -> Any:
    """dgesv for one right-hand side, in place; `pivots` are n C ints; 0, or where it failed."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data, n = _array(context, builder, signature.args[1], values[1])
        order, _ = _array(context, builder, signature.args[2], values[2])
        solution, _ = _array(context, builder, signature.args[3], values[3])
        one = cgutils.alloca_once_value(builder, ir.Constant(_INT, 1))
        info = _zero(builder)
        _call(builder, values[0], [n, one, data, n, order, solution, n, info])
        return builder.load(info)

    return types.int32(types.int64, matrix, pivots, right), code
