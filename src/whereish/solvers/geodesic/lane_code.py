"""The operations of :mod:`whereish.solvers.geodesic.lanes`, in LLVM's intermediate language.

They name no instruction set: LLVM lowers vectors to whatever the machine has.  Imported when
a kernel that uses them is compiled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from whereish.solvers.geodesic.lanes import LANES

__all__ = ["accumulate", "relax", "weighed"]

_I32 = ir.IntType(32)
_WORD = ir.IntType(16)
_WORDS = ir.VectorType(_WORD, LANES)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_INTS = ir.VectorType(_I32, LANES)

# 2^f on [-1/2, 1/2], highest power first: minimax, relative error 2e-8 before rounding.
_EXP2 = (
    1.5353362e-4,
    1.3398874e-3,
    9.6184373e-3,
    5.5503324e-2,
    2.4022648e-1,
    6.9314720e-1,
    1.0,
)


def _data(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    return context.make_array(array_type)(context, builder, array).data


def _address(builder: Any, base: Any, index: Any, vector: Any) -> Any:
    return builder.bitcast(builder.gep(base, [index]), vector.as_pointer())


def _load(builder: Any, base: Any, index: Any, vector: Any, align: int) -> Any:
    value = builder.load(_address(builder, base, index, vector))
    value.align = align  # numpy aligns to the element only
    return value


def _store(builder: Any, value: Any, base: Any, index: Any, vector: Any, align: int) -> None:
    builder.store(value, _address(builder, base, index, vector)).align = align


def _splat(builder: Any, scalar: Any, vector: Any) -> Any:
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(
        one, ir.Constant(vector, ir.Undefined), ir.Constant(_INTS, [0] * LANES)
    )


def _call(builder: Any, name: str, vector: Any, *arguments: Any) -> Any:
    suffix = "i16" if vector is _WORDS else "f32"
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(vector, [vector] * len(arguments)),
        f"llvm.{name}.v{LANES}{suffix}",
    )
    return builder.call(function, arguments)


def _decay(builder: Any, d: Any, cell: Any, rate: Any) -> Any:
    """2^(-rate·D[cell]) in every lane."""
    lanes = ir.Constant(cell.type, LANES)
    words = _load(builder, d, builder.mul(cell, lanes), _WORDS, 2)
    x = builder.fmul(builder.uitofp(words, _FLOATS), _splat(builder, builder.fneg(rate), _FLOATS))
    whole = _call(builder, "rint", _FLOATS, x)
    part = builder.fsub(x, whole)
    power = ir.Constant(_FLOATS, [_EXP2[0]] * LANES)
    for coefficient in _EXP2[1:]:
        constant = ir.Constant(_FLOATS, [coefficient] * LANES)
        power = _call(builder, "fmuladd", _FLOATS, power, part, constant)
    exponent = builder.shl(builder.fptosi(whole, _INTS), ir.Constant(_INTS, [23] * LANES))
    return builder.bitcast(builder.add(builder.bitcast(power, _INTS), exponent), _FLOATS)


def _sum(builder: Any, vector: Any) -> Any:
    """The sum of all lanes, by halves: in the same order on every machine."""
    width = LANES
    while width > 1:
        width //= 2
        nothing = ir.Constant(vector.type, ir.Undefined)
        indices = ir.VectorType(_I32, width)
        low, high = (
            builder.shuffle_vector(
                vector, nothing, ir.Constant(indices, list(range(first, first + width)))
            )
            for first in (0, width)
        )
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, ir.Constant(_I32, 0))


@intrinsic  # type: ignore[untyped-decorator]
def relax(
    typing: Any, D: Any, c: Any, weights: Any, first: Any, offsets: Any, sign: Any, count: Any
) -> Any:
    """Relax cell `c` from `count` neighbours ``c + sign·offsets[k]``; whether it changed.

    ``D`` is (cells, LANES) uint16, the weight of neighbour k ``weights.flat[first + k]``.
    """
    intp = types.intp
    signature = types.boolean(D, intp, weights, intp, offsets, intp, intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        d, w, off = (_data(context, builder, sig.args[i], args[i]) for i in (0, 2, 4))
        cell, lanes = args[1], ir.Constant(args[1].type, LANES)
        here = builder.mul(cell, lanes)
        old = _load(builder, d, here, _WORDS, 2)
        best = cgutils.alloca_once_value(builder, old)
        with cgutils.for_range(builder, args[6]) as loop:
            step = builder.mul(args[5], builder.load(builder.gep(off, [loop.index])))
            there = builder.mul(builder.add(cell, step), lanes)
            weight = builder.load(builder.gep(w, [builder.add(args[3], loop.index)]))
            through = _call(
                builder,
                "uadd.sat",
                _WORDS,
                _load(builder, d, there, _WORDS, 2),
                _splat(builder, weight, _WORDS),
            )
            builder.store(_call(builder, "umin", _WORDS, builder.load(best), through), best)
        new = builder.load(best)
        _store(builder, new, d, here, _WORDS, 2)
        change = builder.bitcast(builder.xor(old, new), ir.IntType(16 * LANES))
        return builder.icmp_unsigned("!=", change, ir.Constant(change.type, 0))

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def accumulate(typing: Any, total: Any, D: Any, c: Any, values: Any, at: Any, rate: Any) -> Any:
    """Add ``values[at, r]·2^(-rate·D[c])`` to ``total[r]`` for every right-hand side r.

    ``total`` is (r, LANES) float32 and ``values`` (cells, r) float32.
    """
    signature = types.void(total, D, types.intp, values, types.intp, types.float32)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        sums, d, v = (_data(context, builder, sig.args[i], args[i]) for i in (0, 1, 3))
        shape = cgutils.unpack_tuple(
            builder, context.make_array(sig.args[0])(context, builder, args[0]).shape
        )
        sides, lanes = shape[0], ir.Constant(args[2].type, LANES)
        decay = _decay(builder, d, args[2], args[5])
        first = builder.mul(args[4], sides)
        with cgutils.for_range(builder, sides) as loop:
            value = builder.load(builder.gep(v, [builder.add(first, loop.index)]))
            row = builder.mul(loop.index, lanes)
            new = _call(
                builder,
                "fmuladd",
                _FLOATS,
                decay,
                _splat(builder, value, _FLOATS),
                _load(builder, sums, row, _FLOATS, 4),
            )
            _store(builder, new, sums, row, _FLOATS, 4)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def weighed(typing: Any, D: Any, c: Any, shares: Any, rate: Any) -> Any:
    """The sum over the lanes of ``shares·2^(-rate·D[c])``; `shares` are LANES float32."""
    signature = types.float32(D, types.intp, shares, types.float32)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        d, v = (_data(context, builder, sig.args[i], args[i]) for i in (0, 2))
        decay = _decay(builder, d, args[1], args[3])
        first = ir.Constant(args[1].type, 0)
        return _sum(builder, builder.fmul(decay, _load(builder, v, first, _FLOATS, 4)))

    return signature, codegen
