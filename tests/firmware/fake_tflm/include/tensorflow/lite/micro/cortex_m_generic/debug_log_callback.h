// A fake. See README.md.
#pragma once
extern "C" {
typedef void (*DebugLogCallback)(const char* s);
void RegisterDebugLogCallback(DebugLogCallback callback);
}
