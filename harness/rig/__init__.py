"""Rigs: a board type and the probe and port that it hangs on, opened for one process at a time."""
