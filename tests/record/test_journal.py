"""The journal: what was finished is there after a kill, whatever the kill cut."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.record.journal import Journal, JournalEntry
from harness.record.schema import MeasuredRecord, TrialRecord
from harness.record.store import ResultsError
from tests.patience import PATIENCE_S

ENTRIES = [
    JournalEntry(TrialRecord(65536, "works", output_digest="ff"), MeasuredRecord(65536, 1504)),
    JournalEntry(TrialRecord(1936, "works")),
    JournalEntry(TrialRecord(1920, "too_small", "alloc_failed", 'a "quoted"\nline')),
]


def test_entries_are_there_for_the_next_run(tmp_path: Path) -> None:
    with Journal(tmp_path, {"model": "a"}, JournalEntry) as journal:
        for entry in ENTRIES:
            journal.append(entry)
    with Journal(tmp_path, {"model": "a"}, JournalEntry) as journal:
        assert journal.entries() == ENTRIES
    with Journal(tmp_path, {"model": "b"}, JournalEntry) as journal:
        assert journal.entries() == []


@given(cut=st.integers(0, 10_000))
def test_a_cut_at_any_byte_loses_at_most_the_entry_that_was_being_written(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    with Journal(folder, {}, JournalEntry) as journal:
        for entry in ENTRIES:
            journal.append(entry)
        path = journal.path
    data = path.read_bytes()
    cut %= len(data) + 1
    path.write_bytes(data[:cut])
    whole = data[:cut].count(b"\n")
    with Journal(folder, {}, JournalEntry) as journal:
        assert journal.entries() == ENTRIES[:whole]
        journal.append(ENTRIES[2])
        assert journal.entries() == [*ENTRIES[:whole], ENTRIES[2]]


def test_starting_anew_forgets(tmp_path: Path) -> None:
    with Journal(tmp_path, {}, JournalEntry) as journal:
        journal.append(ENTRIES[0])
        journal.clear()
        journal.append(ENTRIES[1])
    with Journal(tmp_path, {}, JournalEntry) as journal:
        assert journal.entries() == [ENTRIES[1]]


def test_two_runs_of_the_same_do_not_mix(tmp_path: Path) -> None:
    with (
        Journal(tmp_path, {}, JournalEntry),
        pytest.raises(UsageError, match="another run of this model on this board is running"),
    ):
        Journal(tmp_path, {}, JournalEntry, patience_s=0).__enter__()


def test_a_run_that_is_just_ending_is_waited_for(tmp_path: Path) -> None:
    """kill -9 and at once the same command again: the worker of the first ends a moment later."""
    held = threading.Event()

    def end_soon() -> None:
        with Journal(tmp_path, {}, JournalEntry) as former:
            former.append(ENTRIES[0])
            held.set()
            threading.Event().wait(0.3)

    ending = threading.Thread(target=end_soon)
    ending.start()
    assert held.wait(PATIENCE_S)
    with Journal(tmp_path, {}, JournalEntry, patience_s=PATIENCE_S) as journal:
        assert journal.entries() == ENTRIES[:1]
    ending.join()


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError), Journal(tmp_path / "file" / "journal", {}, JournalEntry):
        pass
