// The protocol: one request at a time, each answered once, a repeated one answered with the same bytes again.
#pragma once

namespace harness {

[[noreturn]] void serve();

}  // namespace harness
