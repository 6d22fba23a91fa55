"""The operations of :mod:`whereish.solvers.geodesic.lanes`, in LLVM's intermediate language.

Imported when a kernel that uses them is compiled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.geodesic.vectors import (
    FLOATS,
    INTS,
    WORDS,
    Floats,
    call,
    data,
    halves,
    load,
    splat,
    store,
)

__all__ = ["accumulate", "decay", "relax", "weighed"]

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


def decay(builder: Any, d: Any, cell: Any, rate: Any) -> Any:
    """2^(-rate·D[cell]) in every lane."""
    lanes = ir.Constant(cell.type, LANES)
    words = Floats.of_words(builder, d, builder.mul(cell, lanes))
    x = words * Floats.all(builder, builder.fneg(rate))
    whole = Floats(builder, call(builder, "rint", FLOATS, x.value))
    power = (x - whole).polynomial(_EXP2)
    exponent = builder.shl(builder.fptosi(whole.value, INTS), ir.Constant(INTS, [23] * LANES))
    return builder.bitcast(builder.add(power.bits(), exponent), FLOATS)


def _sum(builder: Any, vector: Any) -> Any:
    """The sum of all lanes, by halves: in the same order on every machine."""
    while vector.type.count > 1:
        vector = builder.fadd(*halves(builder, vector))
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


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
        d, w, off = (data(context, builder, sig.args[i], args[i]) for i in (0, 2, 4))
        cell, lanes = args[1], ir.Constant(args[1].type, LANES)
        here = builder.mul(cell, lanes)
        old = load(builder, d, here, WORDS)
        best = cgutils.alloca_once_value(builder, old)
        with cgutils.for_range(builder, args[6]) as loop:
            step = builder.mul(args[5], builder.load(builder.gep(off, [loop.index])))
            there = builder.mul(builder.add(cell, step), lanes)
            weight = builder.load(builder.gep(w, [builder.add(args[3], loop.index)]))
            through = call(
                builder,
                "uadd.sat",
                WORDS,
                load(builder, d, there, WORDS),
                splat(builder, weight, WORDS),
            )
            builder.store(call(builder, "umin", WORDS, builder.load(best), through), best)
        new = builder.load(best)
        store(builder, new, d, here)
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
        sums, d, v = (data(context, builder, sig.args[i], args[i]) for i in (0, 1, 3))
        shape = cgutils.unpack_tuple(
            builder, context.make_array(sig.args[0])(context, builder, args[0]).shape
        )
        sides, lanes = shape[0], ir.Constant(args[2].type, LANES)
        near = decay(builder, d, args[2], args[5])
        first = builder.mul(args[4], sides)
        with cgutils.for_range(builder, sides) as loop:
            value = builder.load(builder.gep(v, [builder.add(first, loop.index)]))
            row = builder.mul(loop.index, lanes)
            new = call(
                builder,
                "fmuladd",
                FLOATS,
                near,
                splat(builder, value, FLOATS),
                load(builder, sums, row, FLOATS),
            )
            store(builder, new, sums, row)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def weighed(typing: Any, D: Any, c: Any, shares: Any, rate: Any) -> Any:
    """The sum over the lanes of ``shares·2^(-rate·D[c])``; `shares` are LANES float32."""
    signature = types.float32(D, types.intp, shares, types.float32)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        d, v = (data(context, builder, sig.args[i], args[i]) for i in (0, 2))
        near = decay(builder, d, args[1], args[3])
        first = ir.Constant(args[1].type, 0)
        return _sum(builder, builder.fmul(near, load(builder, v, first, FLOATS)))

    return signature, codegen
