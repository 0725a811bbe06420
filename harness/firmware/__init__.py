"""Firmware: op resolver, rendering, toolchain, TFLM library, ELF facts and the fit check."""
