"""Limits that are constants in TFLM's source (commit 90b983c), the same for every ABI."""

from __future__ import annotations

#: Alignment of the arena's base and of every kernel buffer, bytes. TFLM micro_arena_constants.h,
#: MicroArenaBufferAlignment().
ARENA_ALIGNMENT = 16

#: Scratch buffers that one operator may request. TFLM micro_allocator.cc, kMaxScratchBuffersPerOp.
MAX_SCRATCH_BUFFERS_PER_OP = 12

#: Buffers that the linear planner can hold. TFLM memory_planner/linear_memory_planner.h, kMaxBufferCount.
LINEAR_PLANNER_MAX_BUFFERS = 1024

#: Inputs of one CONCATENATION. TFLM kernels/concatenation.cc, kMaxInputNum.
MAX_CONCATENATION_INPUTS = 10
