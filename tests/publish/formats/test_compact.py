"""Released columns hold the values of their rows, and no byte of anything else."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pyarrow as pa
import pytest

import whereish as wh
from whereish.publish.formats.compact import compacted, plain_type

CANARY = "canary-of-an-unreleased-row"
NUMBER = 48.123456789012345
NEEDLES = (CANARY.encode(), np.float64(NUMBER).tobytes())


def text(kind=None):
    """Six values; the first and the last are secrets outside the window, one is under a null."""
    array = pa.array([CANARY, "b", CANARY, "d", "", CANARY], kind or pa.string())
    return hidden(array, 2)


def hidden(array: pa.Array, *rows: int) -> pa.Array:
    """The same buffers with a bitmap that covers rows: what is under the nulls stays there."""
    valid = np.ones(len(array), bool)
    valid[list(rows)] = False
    bits = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    own = array.type.num_buffers if array.type.num_fields else None
    children = None
    if isinstance(array, pa.StructArray):
        children = [array.field(i) for i in range(array.type.num_fields)]
    elif array.type.num_fields:
        children = [array.values]
    return pa.Array.from_buffers(
        array.type, len(array), [bits, *array.buffers()[1:own]], children=children
    )


def numbers() -> pa.Array:
    return hidden(pa.array([NUMBER, 1.0, NUMBER, 3.0, 4.0, NUMBER]), 2)


def categories(of=None) -> pa.Array:
    """Values of which some rows have one, and no released row has the canary."""
    values = pa.array(["b", "d", CANARY], of or pa.string())
    indices = pa.array([2, 0, 2, 1, 1, 2], pa.int8(), mask=np.arange(6) == 2)
    return pa.DictionaryArray.from_arrays(indices, values)


def lists(kind) -> pa.Array:
    """Lists of categories, with a canary before, behind, and under a null."""
    made = pa.array([[CANARY], ["b"], [CANARY, CANARY], [], ["d", "e"], [CANARY]], kind)
    return hidden(made, 2)


def encoded(ends: list[int], values: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), values)


def struct(child: pa.Array) -> pa.Array:
    """A struct whose own nulls cover what its fields hold."""
    under = pa.array([NUMBER, NUMBER, 2.0, 3.0, 4.0, NUMBER])
    return hidden(pa.StructArray.from_arrays([child, under], ["c", "x"]), 1)


def fixed(kind) -> pa.Array:
    """Pairs, of which a canary is in the rows outside the window and under a null."""
    pair = [CANARY, CANARY]
    values = pa.array([*pair, "b", "d", *pair, "d", None, "b", "b", *pair], kind)
    return hidden(pa.FixedSizeListArray.from_arrays(values, 2), 2)


def union(dense: bool) -> pa.Array:
    codes = pa.array([5, 7, 5, 7, 5, 7], pa.int8())
    children = [text(), categories()]
    if dense:
        offsets = pa.array([0, 1, 3, 3, 4, 5], pa.int32())
        return pa.UnionArray.from_dense(codes, offsets, children, ["t", "c"], [5, 7])
    # What a row's other type holds is not its value.
    children[0] = pa.array([CANARY, CANARY, "c", CANARY, "e", CANARY])
    return pa.UnionArray.from_sparse(codes, children, ["t", "c"], [5, 7])


class Tagged(pa.ExtensionType):
    """An extension type of which the parameters are text."""

    def __init__(self, storage=None) -> None:
        super().__init__(storage or pa.string(), "whereish.tests.tagged")

    def __arrow_ext_serialize__(self) -> bytes:
        return CANARY.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls(storage)


WORDS = pa.string()
CATEGORY = pa.dictionary(pa.int8(), WORDS)
MADE = {
    "double": numbers,
    "double without nulls": lambda: pa.array([NUMBER, 1.0, 2.0, 3.0, 4.0, NUMBER]),
    "text": text,
    "large text": lambda: text(pa.large_string()),
    "text view": lambda: text(pa.string_view()),
    "binary": lambda: text().cast(pa.binary()),
    "categories": categories,
    "list": lambda: lists(pa.list_(WORDS)),
    "list of categories": lambda: lists(pa.list_(CATEGORY)),
    "large list of categories": lambda: lists(pa.large_list(CATEGORY)),
    "list view": lambda: lists(pa.list_view(WORDS)),
    "large list view of categories": lambda: lists(pa.large_list_view(CATEGORY)),
    "fixed-size list of categories": lambda: fixed(CATEGORY),
    "fixed-size list of text": lambda: fixed(WORDS),
    "struct of categories": lambda: struct(categories()),
    "struct of struct": lambda: struct(struct(text())),
    "struct of run ends": lambda: struct(encoded([1, 5, 6], pa.array([CANARY, "b", CANARY]))),
    "struct of union": lambda: struct(union(dense=True)),
    "map": lambda: hidden(
        pa.array(
            [[(CANARY, NUMBER)], [("b", 1.0)], [(CANARY, NUMBER)], [], None, [(CANARY, NUMBER)]],
            pa.map_(WORDS, pa.float64()),
        ),
        2,
        4,
    ),
    "dense union": lambda: union(dense=True),
    "sparse union": lambda: union(dense=False),
    "run ends": lambda: encoded([1, 3, 5, 6], pa.array([CANARY, "b", None, CANARY])),
    "run ends of categories": lambda: encoded([1, 2, 3, 4, 6], categories().slice(0, 5)),
    "extension": lambda: pa.ExtensionArray.from_storage(Tagged(), text()),
    "list of extension": lambda: pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3, 4, 5, 6], pa.int32()),
        pa.ExtensionArray.from_storage(Tagged(), text()),
    ),
    "flags": lambda: hidden(pa.array([True, False, True, True, False, True]), 2),
    "nothing": lambda: pa.nulls(6),
    "decimals": lambda: numbers().cast(pa.decimal128(20, 12), safe=False),
    "fixed bytes": lambda: hidden(
        pa.array([CANARY.encode()[:8], b"1234567b"] * 3, pa.binary(8)), 2, 4
    ),
}
"""Each array is released as its rows 1 to 4, of which row 2 is null or harmless."""


def in_buffers(array: pa.Array) -> bytes:
    """All that a holder of the array can read, and the text of its type."""
    if isinstance(array, pa.ExtensionArray):
        return in_buffers(array.storage)
    raw = [buffer.to_pybytes() for buffer in array.buffers() if buffer is not None]
    if isinstance(array, pa.DictionaryArray):
        raw.append(in_buffers(array.dictionary))
    return b"".join(raw) + pickle.dumps(array)


@pytest.mark.parametrize("name", MADE)
def test_released_arrow_columns_hold_no_unreleased_values(name):
    whole = MADE[name]()
    whole.validate(full=True)
    window = whole.slice(1, 4)
    values = window.to_pylist()
    assert CANARY not in str(values)
    assert str(NUMBER) not in str(values)
    copy = compacted(window)
    copy.validate(full=True)
    assert copy.type == plain_type(window.type)
    assert copy.to_pylist() == values
    assert not [needle for needle in NEEDLES if needle in in_buffers(copy)]


@pytest.mark.parametrize("name", MADE)
def test_whole_tables_of_every_nested_type(name):
    table = pa.table({"lon": np.full(6, 2.3), "lat": np.full(6, 48.8), "kept": MADE[name]()})
    released = wh.sanitize(
        table.slice(1, 4), lon="lon", lat="lat", epsilon="1/km", keep=["kept"], insecure_seed=1
    )
    column = released.column("kept").combine_chunks()
    assert released.column("kept").to_pylist() == table.column("kept").to_pylist()[1:5]
    for one in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        assert not [needle for needle in NEEDLES if needle in in_buffers(one)]
    assert not [needle for needle in NEEDLES if needle in pickle.dumps(released)]


def test_the_needles_are_found_where_they_are():
    """The search is no sham: all but a few of the windows share their buffers with secrets."""
    found = {
        name
        for name, make in MADE.items()
        if any(needle in in_buffers(make().slice(1, 4)) for needle in NEEDLES)
    }
    assert found >= set(MADE) - {"flags", "nothing", "decimals", "fixed bytes"}


@pytest.mark.parametrize("kind", [pa.uuid(), pa.json_(), pa.bool8()])
def test_extension_types_of_fixed_words_stay(kind):
    storage = {"arrow.uuid": b"0123456789abcdef", "arrow.json": "{}", "arrow.bool8": 1}
    values = pa.array([storage[kind.extension_name]], kind.storage_type)
    copy = compacted(pa.ExtensionArray.from_storage(kind, values))
    assert copy.type == kind
    assert copy.storage.equals(values)


def test_columns_without_rows():
    for make in MADE.values():
        assert compacted(make().slice(0, 0)).type == plain_type(make().type)
        assert len(compacted(make().slice(6))) == 0


LEAVES = {
    pa.int8(): lambda die: die.randrange(100),
    pa.float64(): lambda die: die.random(),
    pa.string(): lambda die: "ab\u00e9" * die.randrange(5),
    pa.string_view(): lambda die: "view" * die.randrange(9),
    pa.large_binary(): lambda die: die.randbytes(die.randrange(20)),
    pa.binary(3): lambda die: die.randbytes(3),
    pa.bool_(): lambda die: die.random() < 0.5,
    CATEGORY: lambda die: die.choice("xyz"),
    pa.null(): lambda die: None,
}


def random_type(die: random.Random, depth: int) -> pa.DataType:
    if depth == 0 or die.random() < 0.3:
        return die.choice(list(LEAVES))
    inner = [random_type(die, depth - 1) for _ in range(2)]
    return die.choice(
        [
            pa.list_(inner[0]),
            pa.large_list(inner[0]),
            pa.list_view(inner[0]),
            pa.large_list_view(inner[0]),
            pa.list_(inner[0], die.randrange(3)),
            pa.struct([("a", inner[0]), ("b", inner[1])][: die.randrange(3)]),
            pa.map_(pa.string(), inner[0]),
        ]
    )


def random_value(die: random.Random, kind: pa.DataType):
    if die.random() < 0.2:
        return None
    if kind in LEAVES:
        return LEAVES[kind](die)
    if pa.types.is_struct(kind):
        return {one.name: random_value(die, one.type) for one in kind}
    if pa.types.is_map(kind):
        return [(f"k{i}", random_value(die, kind.item_type)) for i in range(die.randrange(3))]
    size = kind.list_size if pa.types.is_fixed_size_list(kind) else die.randrange(3)
    return [random_value(die, kind.value_type) for _ in range(size)]


@pytest.mark.parametrize("seed", range(400))
def test_random_nested_types_keep_their_values(seed):
    die = random.Random(seed)
    kind, rows = random_type(die, 3), die.randrange(1, 12)
    array = pa.array([random_value(die, kind) for _ in range(rows)], kind)
    if die.random() < 0.3:
        codes = pa.array([die.randrange(2) for _ in range(rows)], pa.int8())
        array = pa.UnionArray.from_sparse(codes, [array, pa.array(range(rows))])
    if die.random() < 0.2:
        array = encoded(sorted(die.sample(range(1, 3 * rows + 1), rows)), array)
    for _ in range(die.randrange(3)):
        start = die.randrange(len(array) + 1)
        array = array.slice(start, die.randrange(len(array) - start + 1))
    copy = compacted(array)
    copy.validate(full=True)
    assert copy.type == plain_type(array.type)
    assert copy.to_pylist() == array.to_pylist()
