"""Boards without hardware: the host board (real TFLM in a child process) and the digital twins."""
