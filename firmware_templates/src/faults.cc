#include "faults.h"

#include "board.h"
#include "link_symbols.h"
#include "log.h"
#include "registers.h"

namespace harness {
namespace {

constexpr uint32_t kMagic = 0x7F1A5C0D;

// In .noinit: the start-up code leaves it as it is, so it is garbage after power-on and must prove itself.
struct Kept {
  FaultStore fault;
  uint32_t boots_magic;
  uint32_t boots;
};
__attribute__((section(".noinit"))) Kept g_kept;

uint32_t checksum(const FaultStore& store) {
  const uint32_t* word = reinterpret_cast<const uint32_t*>(&store);
  uint32_t sum = 2166136261u;
  for (uint32_t i = 0; i < offsetof(FaultStore, checksum) / 4; ++i) sum = (sum ^ word[i]) * 16777619u;
  return sum;
}

// A reset drops what the data cache holds: write the record through to memory.
void write_back() {
  if (!kHasDataCache) return;
  barrier();
  const uint32_t begin = reinterpret_cast<uint32_t>(&g_kept) & ~31u;
  const uint32_t end = reinterpret_cast<uint32_t>(&g_kept) + sizeof(g_kept);
  for (uint32_t line = begin; line < end; line += 32) reg(scs::kDccmvac) = line;
  barrier();
}

[[noreturn]] void keep(FaultKind kind, uint32_t pc, uint32_t lr, uint32_t sp) {
  FaultStore& store = g_kept.fault;
  store.magic = kMagic;
  store.kind = static_cast<uint32_t>(kind);
  store.stage = g_progress.stage;
  store.arena_bytes = g_progress.arena_bytes;
  store.pc = pc;
  store.lr = lr;
  store.sp = sp;
  store.cfsr = reg(scs::kCfsr);
  store.hfsr = reg(scs::kHfsr);
  store.mmfar = reg(scs::kMmfar);
  store.bfar = reg(scs::kBfar);
  copy_last_line(store.text, sizeof(store.text));
  store.checksum = checksum(store);
  write_back();
  reset_now();
}

// Whether the memory of a stacked frame may be read: a stack pointer that left the stack is itself the fault.
bool inside_stack(uint32_t sp) {
  return sp >= reinterpret_cast<uint32_t>(__stack_limit) && sp <= reinterpret_cast<uint32_t>(_estack) - 32;
}

FaultKind kind_of(uint32_t exception, uint32_t sp) {
  const uint32_t cfsr = reg(scs::kCfsr);
  const uint32_t guard = reinterpret_cast<uint32_t>(__stack_guard);
  const bool hit_guard = (cfsr & (1u << 7)) != 0 && reg(scs::kMmfar) - guard < kStackGuardBytes;
  const bool stacking_failed = (cfsr & ((1u << 4) | (1u << 12))) != 0;  // MSTKERR, STKERR
  const bool limit_hit = kHasStackLimit && (cfsr & (1u << 20)) != 0;    // STKOF
  if (hit_guard || stacking_failed || limit_hit || !inside_stack(sp)) return FaultKind::kStack;
  switch (exception) {
    case 4:
      return FaultKind::kMemManage;
    case 5:
      return FaultKind::kBus;
    case 6:
      return FaultKind::kUsage;
    default:
      return FaultKind::kHard;
  }
}

}  // namespace

__attribute__((section(".noinit"))) Progress g_progress;

void start_faults() {
  g_progress.stage = static_cast<uint32_t>(Stage::kBoot);
  g_progress.arena_bytes = 0;
  if (g_kept.boots_magic != kMagic) {
    g_kept.boots_magic = kMagic;
    g_kept.boots = 0;
  }
  ++g_kept.boots;
  write_back();
  reg(scs::kShcsr) = reg(scs::kShcsr) | (7u << 16);  // MemManage, Bus and Usage faults have their own handlers
  reg(scs::kCcr) = reg(scs::kCcr) | (1u << 4);       // DIV_0_TRP: a division by zero is a fault, not 0
}

uint32_t boot_count() { return g_kept.boots; }

bool fault_pending() { return g_kept.fault.magic == kMagic && g_kept.fault.checksum == checksum(g_kept.fault); }

FaultRecord fault_record() {
  const FaultStore& store = g_kept.fault;
  if (!fault_pending()) {
    FaultRecord none = {};
    none.text = "";
    return none;
  }
  return FaultRecord{static_cast<FaultKind>(store.kind),
                     static_cast<Stage>(store.stage),
                     store.arena_bytes,
                     store.pc,
                     store.lr,
                     store.sp,
                     store.cfsr,
                     store.hfsr,
                     store.mmfar,
                     store.bfar,
                     0,
                     store.text};
}

void clear_fault() {
  g_kept.fault.magic = 0;
  write_back();
}

void fault_from_halt(uint32_t lr) {
  uint32_t sp;
  asm volatile("mov %0, sp" : "=r"(sp));
  keep(FaultKind::kHalt, lr, lr, sp);
}

void fault_from_watchdog(const uint32_t* frame) {
  const uint32_t sp = reinterpret_cast<uint32_t>(frame);
  const bool readable = inside_stack(sp);
  keep(FaultKind::kWatchdog, readable ? frame[6] : 0, readable ? frame[5] : 0, sp + 32);
}

void reset_now() {
  barrier();
  reg(scs::kAircr) = 0x05FA0004;  // SYSRESETREQ
  barrier();
  for (;;) asm volatile("nop");
}

// `frame` is where the core stacked r0-r3, r12, lr, pc, xpsr; the handler itself runs on a fresh stack.
extern "C" [[noreturn]] void harness_fault(const uint32_t* frame, uint32_t exception) {
  const uint32_t sp = reinterpret_cast<uint32_t>(frame);
  const bool readable = inside_stack(sp);
  keep(kind_of(exception & 0x1FFu, sp), readable ? frame[6] : 0, readable ? frame[5] : 0, sp + 32);
}

}  // namespace harness
