"""The history: every run, result, trial and operator timing of a lab, in SQLite by default, in PostgreSQL by URL."""

from harness.lab.history.frame import load

__all__ = ["load"]
