"""Planners of the head, the comparison table and the independent verifier."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.builder.random_models import random_model
from harness.model.reader import parse_model
from harness.plan.arena import plan_arena
from harness.plan.buffer import BufferRequest
from harness.plan.comparison import PLANNERS, alignment_costs, compare, head_bytes
from harness.plan.greedy import greedy
from harness.plan.planners.heuristics import best_fit, by_size, first_use, lower_bound_bytes, no_reuse
from harness.plan.planners.occupancy import place_in_order
from harness.plan.planners.search import search_placement
from harness.plan.setup import Category, TailItem
from harness.plan.target import target_for
from harness.plan.verifier import Fault, UnsoundPlanError, verify, verify_tail, violations
from tests.examples import examples


def buffer(size: int, first: int, last: int, offline: int | None = None) -> BufferRequest:
    rounded = -(-size // 16) * 16
    return BufferRequest(rounded, first, last, 0, tensor=0, requested_bytes=size, offline_offset=offline)


#: The well-known example: the first tensor is free before the third is made, but too small for it.
EXAMPLE = [buffer(100, 0, 1), buffer(200, 1, 2), buffer(150, 2, 3)]

#: memory_planner/non_persistent_buffer_planner_shim.h: TFLM's greedy planner needs 1012 bytes, 826 are enough.
SHIM = [
    BufferRequest(size, first, last, 0, tensor=i)
    for i, (size, first, last) in enumerate(
        [
            (400, 1, 4),
            (401, 1, 1),
            (10, 1, 2),
            (201, 2, 4),
            (11, 2, 3),
            (202, 2, 3),
            (12, 3, 4),
            (200, 4, 4),
            (13, 4, 4),
        ]
    )
]


@pytest.mark.parametrize(
    ("planner", "expected"),
    [("first_use", 480), ("none", 480), ("greedy", 368), ("best_fit", 368), ("search", 368)],
)
def test_the_worked_example(planner: str, expected: int) -> None:
    assert head_bytes(EXAMPLE, PLANNERS[planner](EXAMPLE)) == expected


def test_the_bound_of_the_worked_example_is_two_live_tensors() -> None:
    assert lower_bound_bytes(EXAMPLE) == 208 + 160


def test_first_use_puts_the_third_tensor_behind_the_second() -> None:
    assert first_use(EXAMPLE) == [0, 112, 320]


def test_search_finds_what_greedy_by_size_misses() -> None:
    assert head_bytes(SHIM, greedy(SHIM)) == 1012
    searched = search_placement(SHIM)
    assert searched.head_bytes == 826
    assert searched.proven


def test_best_fit_takes_the_smaller_gap() -> None:
    fixed = [buffer(32, 0, 9, offline=64), buffer(32, 0, 9, offline=112), buffer(16, 0, 9)]
    assert place_in_order(fixed, [2])[2] == 0
    assert best_fit(fixed)[2] == 96


def test_an_offline_offset_is_kept_and_others_go_around_it() -> None:
    requests = [buffer(64, 0, 1, offline=128), buffer(128, 0, 1), buffer(16, 0, 1)]
    assert greedy(requests) == [128, 0, 192]


def test_the_table_gives_head_ratio_and_who_cannot_be_beaten() -> None:
    comparison = compare(EXAMPLE, {"none": no_reuse, "best_fit": best_fit})
    assert comparison.bound_bytes == 368
    none, best = comparison.results
    assert (none.planner, none.head_bytes, none.optimal) == ("none", 480, False)
    assert none.ratio == pytest.approx(480 / 368)
    assert (best.head_bytes, best.ratio, best.optimal) == (368, 1.0, True)
    assert none.seconds >= 0


def test_alignment_costs_are_counted_at_the_fullest_moment_and_over_all() -> None:
    four, eight, sixteen = alignment_costs(EXAMPLE, greedy)
    assert (four.head_bytes, four.padding_bytes, four.peak_padding_bytes) == (352, 2, 2)
    assert (eight.head_bytes, eight.padding_bytes, eight.peak_padding_bytes) == (352, 6, 2)
    assert (sixteen.head_bytes, sixteen.padding_bytes, sixteen.peak_padding_bytes) == (368, 30, 18)


def test_no_buffers_need_no_head() -> None:
    for planner in PLANNERS.values():
        assert planner([]) == []
    assert compare([], PLANNERS).results[0].ratio == 1.0


requests_strategy = st.lists(
    st.tuples(st.integers(0, 4000), st.integers(-1, 30), st.integers(0, 12)).map(
        lambda t: buffer(t[0], t[1], t[1] + t[2])
    ),
    max_size=40,
)


@given(requests_strategy)
@examples(150)
def test_every_planner_is_sound_and_within_the_bounds(requests: list[BufferRequest]) -> None:
    bound = lower_bound_bytes(requests)
    total = sum(r.size_bytes for r in requests)
    for name, planner in PLANNERS.items():
        if name == "search":
            continue
        offsets = planner(requests)
        verify(requests, offsets, alignment=16)
        assert bound <= head_bytes(requests, offsets) <= total


@given(requests_strategy)
@examples(8)
def test_search_is_sound_deterministic_and_never_worse(requests: list[BufferRequest]) -> None:
    searched = search_placement(requests)
    verify(requests, searched.offsets, alignment=16)
    others = [head_bytes(requests, PLANNERS[n](requests)) for n in ("greedy", "best_fit", "first_use")]
    assert lower_bound_bytes(requests) <= searched.head_bytes <= min(others)
    assert search_placement(requests) == searched


@given(
    st.lists(
        st.tuples(st.integers(1, 120), st.integers(0, 6), st.integers(0, 3)).map(
            lambda t: buffer(t[0], t[1], t[1] + t[2])
        ),
        max_size=6,
    )
)
@examples(40)
def test_a_proven_search_equals_trying_every_order(requests: list[BufferRequest]) -> None:
    searched = search_placement(requests)
    every = [head_bytes(requests, place_in_order(requests, order)) for order in permutations(range(len(requests)))]
    assert searched.proven
    assert searched.head_bytes == min(every)


@given(requests_strategy)
@examples(100)
def test_placing_by_size_is_tflm_s_greedy_planner(requests: list[BufferRequest]) -> None:
    requests = [request for request in requests if request.size_bytes]
    assert place_in_order(requests, by_size(requests)) == greedy(requests)


def brute_force_overlaps(requests: list[BufferRequest], offsets: list[int]) -> bool:
    for i, a in enumerate(requests):
        for j in range(i):
            b = requests[j]
            in_time = a.first_use <= b.last_use and b.first_use <= a.last_use
            in_space = offsets[i] < offsets[j] + b.size_bytes and offsets[j] < offsets[i] + a.size_bytes
            if in_time and in_space and a.size_bytes and b.size_bytes:
                return True
    return False


@given(requests_strategy, st.data())
@examples(200)
def test_the_verifier_agrees_with_comparing_every_pair(requests: list[BufferRequest], data: st.DataObject) -> None:
    count = len(requests)
    steps = data.draw(st.lists(st.integers(0, 600), min_size=count, max_size=count))
    offsets = [step * 16 for step in steps]
    found = violations(requests, offsets, alignment=16)
    assert any(v.fault is Fault.OVERLAP for v in found) == brute_force_overlaps(requests, offsets)


def test_the_verifier_names_the_buffers_and_the_time() -> None:
    found = violations(EXAMPLE, [0, 96, 320], alignment=16)
    assert [(v.fault, v.buffers) for v in found] == [(Fault.OVERLAP, (0, 1))]
    assert found[0].text == "buffers 0 (bytes 0 to 112) and 1 (bytes 96 to 304) are both alive at time 1"


def test_the_verifier_sees_misalignment_bounds_and_missing_offsets() -> None:
    found = violations(EXAMPLE, [-16, 120, 336], alignment=16, limit_bytes=480)
    assert [v.fault for v in found] == [Fault.OUT_OF_BOUNDS, Fault.MISALIGNED, Fault.OUT_OF_BOUNDS]
    assert [v.fault for v in violations(EXAMPLE, [0, 112], alignment=16)] == [Fault.COUNT]
    for offsets in ([0, 112], [0, 120, 336], [0, 112, 300]):
        with pytest.raises(UnsoundPlanError, match="the placement is unsound"):
            verify(EXAMPLE, offsets, alignment=16)


def test_an_overlap_that_the_model_itself_plans_is_named_but_not_the_planners_fault() -> None:
    requests = [buffer(64, 0, 1, offline=0), buffer(64, 0, 1, offline=32), buffer(16, 0, 1)]
    offsets = greedy(requests)
    assert offsets == [0, 32, 96]
    assert [v.fault for v in violations(requests, offsets, alignment=16)] == [Fault.OFFLINE_OVERLAP]
    verify(requests, offsets, alignment=16)


def test_zero_byte_buffers_never_collide() -> None:
    requests = [buffer(64, 0, 1), buffer(0, 0, 1)]
    assert violations(requests, [0, 32], alignment=16) == []


def item(size: int, offset: int, alignment: int = 4) -> TailItem:
    return TailItem("x", Category.BUFFER, size, 0, alignment, offset, None, None)


def test_the_tail_is_verified_item_by_item() -> None:
    verify_tail([item(8, 8), item(32, 48, 16), item(4, 52)], arena_bytes=64, head_bytes=12)
    for items, head in (
        ([item(8, 8), item(8, 12)], 0),  # shares bytes with the one before
        ([item(8, 8, 16)], 0),  # 56 is no multiple of 16
        ([item(8, 8), item(32, 48, 16)], 17),  # inside the head
        ([item(80, 80, 16)], 0),  # below the arena
    ):
        with pytest.raises(UnsoundPlanError, match="the tail is unsound"):
            verify_tail(items, arena_bytes=64, head_bytes=head)


@given(st.integers(0, 2**32 - 1))
@examples(60)
def test_every_planner_is_sound_on_random_models(seed: int) -> None:
    plan = plan_arena(parse_model(random_model(seed), "random"), target_for("cortex-m4"))
    requests = [placement.request for placement in plan.placements]
    for result in compare(requests, {n: p for n, p in PLANNERS.items() if n != "search"}).results:
        assert result.head_bytes >= lower_bound_bytes(requests), result.planner
    assert search_placement(requests).head_bytes <= plan.head_bytes
