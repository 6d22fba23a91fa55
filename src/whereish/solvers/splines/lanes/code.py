"""The :mod:`~whereish.solvers.splines.lanes.operations`, in LLVM's intermediate language.

Imported when a kernel that uses them is compiled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from whereish.solvers.geodesic.lane_code import decay
from whereish.solvers.geodesic.lanes import LANES
from whereish.solvers.geodesic.vectors import INTS, WORDS, Floats, call, data, halves, load

__all__ = [
    "add_at_point",
    "around_node",
    "columns",
    "largest",
    "least",
    "side_by_side",
    "steepest_at_point",
    "total",
    "worst",
]

_DOUBLE, _FLOAT, _I32 = ir.DoubleType(), ir.FloatType(), ir.IntType(32)
_SERIES = (1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0)  # of e^x, highest power first


def _floats(builder: Any, numbers: Any) -> list[Floats]:
    """The numbers of a tuple, each in all lanes."""
    return [Floats.all(builder, scalar) for scalar in cgutils.unpack_tuple(builder, numbers)]


def _row(index: int, of: Any) -> Any:
    return ir.Constant(of.type, LANES * index)


def _exponentials(x: Floats, halvings: Any) -> Floats:
    """e^(x·2^halvings), for |x| <= 1/4: Taylor to degree 6, then squared."""
    builder, power = x.builder, x.polynomial(_SERIES)
    out = cgutils.alloca_once_value(builder, power.value)
    with cgutils.for_range(builder, halvings):
        power = Floats(builder, builder.load(out))
        builder.store((power * power).value, out)
    return Floats(builder, builder.load(out))


def _total(vector: Floats) -> Any:
    """The sum of all lanes, in double precision from eight partial sums on."""
    builder, value = vector.builder, vector.value
    while value.type.count > 1:
        if value.type.count == 8:
            value = builder.fpext(value, ir.VectorType(_DOUBLE, 8))
        value = builder.fadd(*halves(builder, value))
    return builder.extract_element(value, ir.Constant(_I32, 0))


def _largest(builder: Any, bits: Any) -> Any:
    """The largest of numbers >= 0 by their bits; infinite where one is not a number."""
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_I32, [INTS]), f"llvm.vector.reduce.umax.v{LANES}i32"
    )
    largest = builder.bitcast(builder.call(function, [bits]), _FLOAT)
    return builder.select(
        builder.fcmp_unordered("uno", largest, largest),
        ir.Constant(_FLOAT, float("inf")),
        largest,
    )


def _both(builder: Any, sides: Any, first: Any) -> tuple[list[Floats], list[Floats]]:
    """What :func:`columns` has left: values along three columns, and their slopes down."""
    rows = [Floats.at(builder, sides, _row(row, first)) for row in range(6)]
    return rows[:3], rows[3:]


def _dot(shares: list[Floats], values: list[Floats], plus: Floats | None = None) -> Floats:
    total = shares[0] * values[0] if plus is None else shares[0].times(values[0], plus)
    for share, value in zip(shares[1:], values[1:], strict=True):
        total = share.times(value, total)
    return total


@intrinsic  # type: ignore[untyped-decorator]
def around_node(typing: Any, D: Any, cells: Any, shares: Any, masses: Any, out: Any) -> Any:
    """Logarithms at nine cells less those at the middle one, and the masses there: (10, 64).

    D (cells, 64) are distances in quanta; `masses` quantum, rate and tail of
    t(d) = 2^{-rate d} + tail, of which the logarithm falls by quantum / (1 + tail 2^{rate d}).
    """
    signature = types.void(D, cells, shares, masses, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        d, nine, share, rows = (_array(context, builder, sig, args, k) for k in (0, 1, 2, 4))
        quantum, rate, tail = cgutils.unpack_tuple(builder, args[3])
        zero = ir.Constant(ir.IntType(64), 0)
        lanes = ir.Constant(zero.type, LANES)
        cells = [builder.load(builder.gep(nine, [ir.Constant(zero.type, m)])) for m in range(9)]
        near = Floats(builder, decay(builder, d, cells[4], rate))
        mass = near + Floats.all(builder, tail)
        fall = Floats.all(builder, quantum) * near / mass
        own = Floats.of_words(builder, d, builder.mul(cells[4], lanes))
        for m, cell in enumerate(cells):
            there = Floats.of_words(builder, d, builder.mul(cell, lanes))
            ((own - there) * fall).store(rows, _row(m, zero))
        (mass * Floats.at(builder, share, zero)).store(rows, _row(9, zero))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def least(typing: Any, D: Any, cell: Any) -> Any:
    """The least of a row of D (cells, 64)."""
    signature = types.uint16(D, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        d = _array(context, builder, sig, args, 0)
        words = load(builder, d, builder.mul(args[1], ir.Constant(args[1].type, LANES)), WORDS)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(WORDS.element, [WORDS]),
            f"llvm.vector.reduce.umin.v{LANES}i16",
        )
        return builder.call(function, [words])

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def columns(typing: Any, A: Any, here: Any, cells: Any, spline: Any, out: Any) -> Any:
    """F less its value at a cell, and its slope down, along the three columns around it.

    `cells` are the nine around, `spline` three weights and three slopes at a point; `out` (6, 64)
    gets three rows of each.
    """
    signature = types.void(A, types.intp, cells, spline, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, nine, rows = (_array(context, builder, sig, args, k) for k in (0, 2, 4))
        numbers = _floats(builder, args[3])
        lanes = ir.Constant(args[1].type, LANES)
        own = Floats.at(builder, a, builder.mul(args[1], lanes))
        for s in range(3):
            around = []
            for r in range(3):
                index = builder.load(builder.gep(nine, [ir.Constant(args[1].type, 3 * r + s)]))
                around.append(Floats.at(builder, a, builder.mul(index, lanes)) - own)
            _dot(numbers[:3], around).store(rows, _row(s, args[1]))
            _dot(numbers[3:], around).store(rows, _row(3 + s, args[1]))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def add_at_point(
    typing: Any, sides: Any, E: Any, here: Any, spline: Any, fall: Any, out: Any, at: Any
) -> Any:
    """Add a block's masses and masses times G_x, G_y at a point to ``out[at]``.

    `sides` are those of :func:`columns`, E (cells, 64) the masses at cells, `spline` three weights
    and three slopes along the row, `fall` (scale, halvings) what the exponents' series needs.
    """
    signature = types.void(sides, E, types.intp, spline, fall, out, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows, e, sums = (_array(context, builder, sig, args, k) for k in (0, 1, 5))
        numbers = _floats(builder, args[3])
        scale, halvings = cgutils.unpack_tuple(builder, args[4])
        values, slopes = _both(builder, rows, args[2])
        exponent = _dot(numbers[:3], values) * Floats.all(builder, scale)
        index = builder.mul(args[2], ir.Constant(args[2].type, LANES))
        mass = _exponentials(exponent, halvings) * Floats.at(builder, e, index)
        across, down = _dot(numbers[3:], values), _dot(numbers[:3], slopes)
        first = builder.mul(args[6], ir.Constant(args[6].type, 3))
        for k, part in enumerate((mass, mass * across, mass * down)):
            place = builder.gep(sums, [builder.add(first, ir.Constant(first.type, k))])
            builder.store(builder.fadd(builder.load(place), _total(part)), place)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def steepest_at_point(typing: Any, sides: Any, spline: Any, mean: Any) -> Any:
    """The largest |G - m|^2 of a block's reports at a point, m = -`mean`; else as above."""
    signature = types.float32(sides, spline, mean)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = _array(context, builder, sig, args, 0)
        numbers = _floats(builder, args[1])
        mx, my = _floats(builder, args[2])
        values, slopes = _both(builder, rows, ir.Constant(ir.IntType(64), 0))
        across = _dot(numbers[3:], values) - mx
        down = _dot(numbers[:3], slopes) - my
        return _largest(builder, across.times(across, down * down).bits())

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def total(typing: Any, E: Any, row: Any) -> Any:
    """The sum of a row of E (cells, 64)."""
    signature = types.float64(E, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        e = _array(context, builder, sig, args, 0)
        lanes = ir.Constant(args[1].type, LANES)
        return _total(Floats.at(builder, e, builder.mul(args[1], lanes)))

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def side_by_side(typing: Any, A: Any, cells: Any, out: Any) -> Any:
    """Copy nine rows of A (cells, 64) to `out` (9, 64)."""
    signature = types.void(A, cells, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, nine, rows = (_array(context, builder, sig, args, k) for k in (0, 1, 2))
        zero = ir.Constant(ir.IntType(64), 0)
        for m in range(9):
            cell = builder.load(builder.gep(nine, [ir.Constant(zero.type, m)]))
            index = builder.mul(cell, ir.Constant(zero.type, LANES))
            Floats.at(builder, a, index).store(rows, _row(m, zero))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def largest(typing: Any, numbers: Any) -> Any:
    """The largest of 64 numbers >= 0."""
    signature = types.float32(numbers)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        zero = ir.Constant(ir.IntType(64), 0)
        values = Floats.at(builder, _array(context, builder, sig, args, 0), zero)
        return _largest(builder, values.bits())

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def worst(typing: Any, V: Any, inverse: Any) -> Any:
    """The largest |V|^2 / e^2 over nine control points (2, 9, 64); `inverse` is 1 / e^2."""
    signature = types.float32(V, inverse)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        points, levels = (_array(context, builder, sig, args, k) for k in (0, 1))
        zero = ir.Constant(ir.IntType(64), 0)
        found = None
        for m in range(9):
            level = builder.load(builder.gep(levels, [ir.Constant(zero.type, m)]))
            x = Floats.at(builder, points, _row(m, zero))
            y = Floats.at(builder, points, _row(9 + m, zero))
            bits = (x.times(x, y * y) * Floats.all(builder, level)).bits()
            found = bits if found is None else call(builder, "umax", INTS, found, bits)
        return _largest(builder, found)

    return signature, codegen


def _array(context: Any, builder: Any, sig: Any, args: Any, k: int) -> Any:
    return data(context, builder, sig.args[k], args[k])
