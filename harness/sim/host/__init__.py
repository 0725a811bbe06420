"""The host board: real TFLM (the ``tflite-micro`` package) in a child process behind a pseudo-terminal.

Three processes. The tool opens the pseudo-terminal with pyserial, as it opens any port (``board.py``). A *supervisor*
(``supervisor.py``) is the hardware: it holds the terminal's other end, boots a fresh *firmware* process for every
reset (``firmware.py``, a fork that has TFLM already imported), and when that one dies it keeps a fault record and
boots again, as a board with a fault handler does. Linux only: TFLM's package has wheels for Linux x86-64.
"""
