"""100,000 damaged models: the reader ends in a model or in its own error, the checks in findings, and nothing hangs.

The mutations know where things stand: offsets, vtables, scalars and the numbers of vectors (indices, shapes) are hit as
well as any byte, because a blind flip mostly lands in constant data.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from harness.errors import ModelFileError
from harness.model.builder import EXAMPLES
from harness.model.checks import check_model
from harness.model.flatbuffer import Field, FlatBuffer
from harness.model.indices import find_index_faults
from harness.model.reader import parse_model

#: 20 × 5,000 mutants.
ROUNDS, MUTANTS = 20, 5_000
#: Small ones, so that most mutations hit structure: together they use options, variables, subgraphs and strings.
SEEDS = sorted((name, data) for name, build in EXAMPLES.items() if len(data := build()) < 4_000)

WORDS = (0, 1, 2, 3, 4, 7, 8, 127, 128, 255, 256, 999, 65535, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 4)


class Recorder(FlatBuffer):
    """A decoder that writes down where the vtables, the offsets and the numbers stand."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.halfwords: list[int] = []
        self.words: list[int] = []
        self.root("Model")

    def _read_vtable(self, name: str, position: int, vtable: int) -> list[tuple[int, Field]]:
        size = struct.unpack_from("<H", self._data, vtable)[0]
        self.halfwords += range(vtable, vtable + size, 2)
        return super()._read_vtable(name, position, vtable)

    def _follow(self, at: int, what: str) -> int:
        self.words.append(at)
        target = super()._follow(at, what)
        self.words.append(target)  # the length of a vector or the vtable offset of a table
        return target

    def _numbers(self, entry: Field, start: int, count: int, what: str) -> tuple[Any, ...]:
        self.words += range(start, start + 4 * min(count, 64), 4)
        return super()._numbers(entry, start, count, what)


def flip(data: bytearray, rng: random.Random, _: Recorder) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def set_byte(data: bytearray, rng: random.Random, _: Recorder) -> None:
    data[rng.randrange(len(data))] = rng.randrange(256)


def set_word(data: bytearray, rng: random.Random, known: Recorder) -> None:
    at = min(rng.choice(known.words), len(data) - 4)
    old = struct.unpack_from("<I", data, at)[0]
    new = rng.choice(WORDS) if rng.random() < 0.7 else (old + rng.randrange(-8, 9)) % 2**32
    struct.pack_into("<I", data, at, new)


def set_halfword(data: bytearray, rng: random.Random, known: Recorder) -> None:
    at = min(rng.choice(known.halfwords), len(data) - 2)
    struct.pack_into("<H", data, at, rng.choice((0, 2, 4, 6, 8, 12, 16, 24, 64, 255, 65535, rng.randrange(128))))


def swap_words(data: bytearray, rng: random.Random, known: Recorder) -> None:
    one, other = (min(rng.choice(known.words), len(data) - 4) for _ in range(2))
    data[one : one + 4], data[other : other + 4] = data[other : other + 4], data[one : one + 4]


def splice(data: bytearray, rng: random.Random, _: Recorder) -> None:
    size = rng.randrange(1, 64)
    source, target = (rng.randrange(max(1, len(data) - size)) for _ in range(2))
    data[target : target + size] = data[source : source + size]


def cut(data: bytearray, rng: random.Random, _: Recorder) -> None:
    del data[rng.randrange(len(data)) :]


def drop(data: bytearray, rng: random.Random, _: Recorder) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 2, 4, 8, 16, 64))]


MUTATIONS: list[Callable[[bytearray, random.Random, Recorder], None]] = [
    *[set_word] * 8,
    *[set_halfword] * 4,
    *[swap_words] * 2,
    *[flip] * 2,
    set_byte,
    splice,
    cut,
    drop,
]


def mutate(data: bytes, known: Recorder, rng: random.Random) -> bytes:
    mutant = bytearray(data)
    for _ in range(1 if rng.random() < 0.5 else rng.randrange(2, 5)):
        if len(mutant) >= 8:
            rng.choice(MUTATIONS)(mutant, rng, known)
    return bytes(mutant)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_no_mutant_raises_anything_but_a_model_file_error(round_: int) -> None:
    rng = random.Random(20_000 + round_)
    seeds = [(data, Recorder(data)) for _, data in SEEDS]
    parsed = judged = 0
    slowest = 0.0
    for _ in range(MUTANTS):
        data, known = rng.choice(seeds)
        mutant = mutate(data, known, rng)
        started = time.process_time()
        try:
            model = parse_model(mutant, lenient=True)
        except ModelFileError as error:
            assert error.code.startswith("model.")
            assert error.remedy
        else:
            parsed += 1
            findings = check_model(model, rng.choice(("reference", "cmsis_nn")))
            judged += any(finding.severity.value == "refused" for finding in findings)
            assert all(finding.message and finding.where for finding in findings)
        slowest = max(slowest, time.process_time() - started)
    assert slowest < 30.0  # of this process: no mutant makes the reader loop for ever
    # the mutations must neither all be caught at the door nor all pass
    assert MUTANTS // 10 < parsed < MUTANTS * 9 // 10
    assert judged > parsed // 4


def test_a_model_that_is_read_strictly_has_valid_indices_only() -> None:
    rng = random.Random(7)
    seeds = [(data, Recorder(data)) for _, data in SEEDS]
    strict = 0
    for _ in range(3_000):
        data, known = rng.choice(seeds)
        try:
            model = parse_model(mutate(data, known, rng))
        except ModelFileError:
            continue
        strict += 1
        assert next(find_index_faults(model), None) is None
        for subgraph, operator in model.operators():
            assert operator.opcode is model.operator_codes[operator.opcode.index]
            for index in (*operator.inputs, *operator.outputs, *operator.intermediates):
                assert index == -1 or subgraph.tensors[index].index == index
    assert strict > 300
