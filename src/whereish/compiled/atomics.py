"""Words that threads share and locks that they sleep on, for numba; imported when needed.

Every operation on a word is sequentially consistent: what a thread wrote before it is seen by
whoever reads the word after it.  Locks are the interpreter's own (``PyThread_acquire_lock``), by
address; they need no interpreter lock.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["acquire", "add_word", "load_word", "release", "set_if", "store_word", "swap_word"]

_ORDER, _BYTES = "seq_cst", 8
_INT = ir.IntType(32)


def _word(context: Any, builder: Any, kind: Any, value: Any, index: Any) -> Any:
    """The address of one of an array's int64."""
    data = context.make_array(kind)(context, builder, value).data
    return builder.gep(data, [index])


@intrinsic  # type: ignore[untyped-decorator]
def load_word(context: Any, words: Any, index: Any) -> Any:
    """words[index]."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _word(context, builder, signature.args[0], *values)
        return builder.load_atomic(at, _ORDER, _BYTES)

    return types.int64(words, types.int64), code


@intrinsic  # type: ignore[untyped-decorator]
def store_word(context: Any, words: Any, index: Any, value: Any) -> Any:
    """words[index] = value."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _word(context, builder, signature.args[0], *values[:2])
        builder.store_atomic(values[2], at, _ORDER, _BYTES)
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64), code


def _changed(how: str) -> Any:
    def typed(context: Any, words: Any, index: Any, value: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            at = _word(context, builder, signature.args[0], *values[:2])
            return builder.atomic_rmw(how, at, values[2], _ORDER)

        return types.int64(words, types.int64, types.int64), code

    return typed


swap_word = intrinsic(_changed("xchg"))
"""Write a value; what was there before."""
add_word = intrinsic(_changed("add"))
"""Add to a word; what was there before."""


@intrinsic  # type: ignore[untyped-decorator]
def set_if(context: Any, words: Any, index: Any, before: Any, after: Any) -> Any:
    """Write `after` if `before` is there; whether it was."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _word(context, builder, signature.args[0], *values[:2])
        both = builder.cmpxchg(at, values[2], values[3], _ORDER, _ORDER)
        return builder.extract_value(both, 1)

    return types.boolean(words, types.int64, types.int64, types.int64), code


@intrinsic  # type: ignore[untyped-decorator]
def acquire(context: Any, address: Any, lock: Any) -> Any:
    """Sleep until the lock is free, and take it."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        called = ir.FunctionType(_INT, [cgutils.voidptr_t, _INT]).as_pointer()
        handle = builder.inttoptr(values[1], cgutils.voidptr_t)
        builder.call(builder.inttoptr(values[0], called), [handle, ir.Constant(_INT, 1)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


@intrinsic  # type: ignore[untyped-decorator]
def release(context: Any, address: Any, lock: Any) -> Any:
    """Let the lock go, which wakes who sleeps on it."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        called = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t]).as_pointer()
        handle = builder.inttoptr(values[1], cgutils.voidptr_t)
        builder.call(builder.inttoptr(values[0], called), [handle])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code
