"""The smallest arena by arithmetic against an allocator that is tried size by size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.plan.setup import Category, Setup, StepKind
from harness.units import align_down, align_up
from tests.examples import examples

_alignment = st.sampled_from([1, 2, 4, 8, 16])
_size = st.integers(0, 90)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("persist"), _size, _alignment),
        st.tuples(st.just("temp"), _size, _alignment),
        st.tuples(st.just("head"), _size, st.just(1)),
        st.tuples(st.just("table"), st.integers(1, 4), st.just(16)),
    ),
    min_size=1,
    max_size=25,
)


def _recorded(steps: list[tuple[str, int, int]]) -> Setup:
    setup = Setup()
    for number, (kind, size, alignment) in enumerate(steps):
        if kind == "persist":
            setup.persist(size, alignment, f"step {number}", Category.BUFFER)
        elif kind == "temp":
            setup.temp(((size, alignment),), f"step {number}")
        elif kind == "table":
            setup.planner_table(size, 40)
        else:
            setup.resize_head(size, f"step {number}")
    return setup


def _passes(steps: list[tuple[str, int, int]], arena_bytes: int) -> bool:
    """SingleArenaBufferAllocator, move for move; persistent buffers may not reach into temporaries."""
    head, temp, tail = 0, 0, arena_bytes
    for kind, size, alignment in steps:
        if kind == "persist":
            tail = align_down(tail - size, alignment)
            if tail < max(head, temp):
                return False
        elif kind == "temp":
            temp = align_up(temp, alignment) + size
            if tail < temp:
                return False
        elif kind == "table":
            start = align_up(temp, 16)
            if (align_down(tail, 16) - start) // 40 < size:
                return False
            temp = start + 40 * size
        else:
            head = temp = size
            if tail < head:
                return False
    return True


@examples(300)
@given(_steps)
def test_the_minimum_passes_and_one_byte_less_does_not(steps: list[tuple[str, int, int]]) -> None:
    minimum, limit = _recorded(steps).minimum()
    assert _passes(steps, minimum)
    assert minimum == 0 or not _passes(steps, minimum - 1)
    assert all(_passes(steps, minimum + more) for more in (1, 7, 16, 100))
    assert limit in _recorded(steps).steps


def test_the_limit_is_the_step_that_needs_the_room() -> None:
    setup = Setup()
    setup.persist(8, 4, "a struct", Category.STRUCTURE)
    setup.temp(((100, 4),), "a temporary")
    setup.resize_head(16, "the head")
    setup.persist(32, 16, "the last one", Category.BUFFER)
    minimum, limit = setup.minimum()
    assert (minimum, limit.label, limit.kind) == (108, "a temporary", StepKind.TEMP)


def test_padding_is_told_apart_from_what_was_asked_for() -> None:
    setup = Setup()
    setup.persist(5, 1, "odd", Category.PARAMETERS)
    setup.persist(8, 16, "aligned", Category.BUFFER)
    odd, aligned = setup.tail_items(64)
    assert (odd.offset_bytes, odd.padding_bytes) == (5, 0)
    assert (aligned.offset_bytes, aligned.size_bytes, aligned.padding_bytes) == (16, 8, 3)
    assert setup.tail_bytes(64) == 16
    assert setup.tail_bytes(65) == 17
