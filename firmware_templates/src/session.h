// TFLM itself, with one model or with several in one arena: one trial per boot, and what can be asked after one that worked. Nothing here is ever destroyed: a failed
// interpreter's destructor reads what was never written.
#pragma once

#include <cstdint>

#include "wire.h"

namespace harness {

bool trial_done();
bool trial_worked();

// `working` is told each stage before it begins.
TrialReport run_trial(const TrialRequest& request, void (*working)(Stage));

bool run_measure(const MeasureRequest& request, MeasureReport* report);
Cycles stored_cycles(uint16_t first);

bool run_profile();
Profile profile_rows(uint16_t first, ProfileRow* rows);

bool restart_state();

bool recorded_allocations(Allocations* allocations, AllocationRow* rows);
// Digests at each operator of one Invoke: of its outputs, or of one tensor. One model only. False: there is no such tensor,
// the inputs could not be set, or Invoke failed.
bool can_trace_operators();
bool trace_operators(uint16_t tensor);
OperatorDigests operator_digests(uint16_t first);

bool tensor_digests(uint16_t first, TensorDigests* digests, TensorDigestRow* rows);

// Bytes of an output or input of the finished trial; null where there is none.
const uint8_t* tensor_bytes(ReadObject object, uint8_t index, uint32_t* size);

InterpreterKind interpreter_kind();
Sizes struct_sizes(uint16_t first, SizeRow* rows);

}  // namespace harness
