"""The greedy planner against a word-for-word transcription of TFLM's loop."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.plan.buffer import BufferRequest
from harness.plan.greedy import greedy
from harness.plan.linear import linear
from tests.examples import examples

_buffers = st.lists(
    st.builds(
        lambda size, first, length, offline: BufferRequest(
            size_bytes=16 * (size if offline is None else size + 1),
            first_use=first,
            last_use=first + length,
            subgraph=0,
            tensor=0,
            offline_offset=None if offline is None else 16 * offline,
        ),
        size=st.integers(0, 12),
        first=st.integers(-1, 40),
        length=st.integers(0, 25),
        offline=st.one_of(st.none(), st.none(), st.none(), st.integers(0, 30)),
    ),
    max_size=40,
)


def _as_tflm_does(requests: list[BufferRequest]) -> list[int]:
    """GreedyMemoryPlanner::CalculateOffsetsIfNeeded, with lists for its linked list and its bubble sort."""
    offline = [i for i, r in enumerate(requests) if r.offline_offset is not None]
    online = [i for i in reversed(range(len(requests))) if requests[i].offline_offset is None]
    swapped = True
    while swapped:
        swapped = False
        for i in range(1, len(online)):
            if requests[online[i - 1]].size_bytes < requests[online[i]].size_bytes:
                online[i - 1], online[i] = online[i], online[i - 1]
                swapped = True
    offsets = [0] * len(requests)
    placed: list[int] = []  # by rising offset, earlier placed first
    for index in offline + online:
        wanted = requests[index]
        candidate = 0
        if wanted.offline_offset is not None:
            candidate = wanted.offline_offset
        else:
            prior: int | None = None
            active = [i for i in placed if requests[i].overlaps_in_time(wanted)]
            for following in [*active, None]:
                if prior is not None:
                    candidate = max(candidate, offsets[prior] + requests[prior].size_bytes)
                if following is None or offsets[following] - candidate >= wanted.size_bytes:
                    break
                prior = following
        offsets[index] = candidate
        position = sum(1 for i in placed if offsets[i] <= candidate)
        placed.insert(position, index)
    return offsets


@examples(400)
@given(_buffers)
def test_greedy_places_every_buffer_where_tflm_does(requests: list[BufferRequest]) -> None:
    assert greedy(requests) == _as_tflm_does(requests)


def test_of_equal_sizes_the_one_added_last_comes_first() -> None:
    requests = [BufferRequest(32, 0, 1, 0, tensor=i) for i in range(3)]
    assert greedy(requests) == [64, 32, 0]


def test_dead_tensors_are_alive_together() -> None:
    requests = [BufferRequest(16, -1, -1, 0, tensor=0), BufferRequest(16, -1, -1, 0, tensor=1)]
    assert greedy([*requests, BufferRequest(16, 0, 3, 0, tensor=2)]) == [16, 0, 0]


def test_an_offline_offset_is_taken_as_it_is_and_gaps_beside_it_are_used() -> None:
    fixed = BufferRequest(16, 0, 5, 0, tensor=0, offline_offset=33)
    assert greedy([fixed, BufferRequest(32, 1, 2, 0, tensor=1), BufferRequest(32, 1, 2, 0, tensor=2)]) == [33, 49, 0]


def test_no_buffers_is_no_head() -> None:
    assert greedy([]) == linear([]) == []


def test_linear_is_the_running_sum() -> None:
    assert linear([BufferRequest(size, 0, 0, 0, tensor=0) for size in (16, 48, 32)]) == [0, 16, 64]
