"""The error boundary: whatever happens inside, a user gets a sentence, a remedy and an exit code, never a traceback.

With ``--json`` among the arguments the error is also one JSON document on stdout, so that whoever reads it always finds
one. ``--debug`` shows the traceback, ``-v`` the library's log.
"""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import select
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from harness.errors import DiskFullError, ExitCode, HarnessError, InternalError, is_disk_full, was_interrupted
from harness.interrupts import terminated_as_interrupted
from harness.units import safe_text

#: What a shell reports for a program that died of SIGPIPE: the reader went away.
BROKEN_PIPE_EXIT = 141


def error_document(error: HarnessError) -> dict[str, Any]:
    """The JSON document of a command that ended in an error."""
    return {"schema": "harness.error", "schema_version": 1, "error": error_fields(error)}


def error_fields(error: HarnessError) -> dict[str, str]:
    """An error as it stands in every JSON document."""
    return {"code": error.code, "message": error.message, "remedy": error.remedy}


def run(command: click.Command, argv: Sequence[str] | None = None) -> int:
    """Run ``command`` and return the process's exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    debug = "--debug" in options
    verbosity = sum(option in {"-v", "--verbose"} for option in options) + 2 * options.count("-vv")
    arguments = [a for at, a in enumerate(arguments) if at >= len(options) or a not in _OWN_OPTIONS]
    _require_streams()
    _configure_logging(verbosity, debug)
    try:
        with terminated_as_interrupted():
            return _invoke(command, arguments)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _interrupted(as_json="--json" in options)
    except Exception as exc:
        return _failed(exc, debug, as_json="--json" in options)


def _failed(exc: Exception, debug: bool, *, as_json: bool) -> int:
    if isinstance(exc, OSError) and exc.errno == errno.EPIPE and _has_lost_reader():
        return _pipe_closed()
    if debug:
        traceback.print_exception(exc)
    if was_interrupted(exc):
        return _interrupted(as_json=as_json)
    error = _as_harness_error(exc)
    _report(error, as_json=as_json)
    return int(error.exit_code)


#: Taken anywhere on the command line, by the boundary.
_OWN_OPTIONS = frozenset({"--debug", "-v", "-vv", "--verbose"})


def _invoke(command: click.Command, arguments: list[str]) -> int:
    """The exit code of a command that ran to its end. Commands return one, or None for 0."""
    if os.environ.get("_HARNESS_COMPLETE"):  # a shell completes a line: click answers, and exits
        command.main(args=arguments, prog_name="harness")
    try:
        # not command.main: it takes every EPIPE, a socket's too, for the standard output's, and exits without a word
        with command.make_context("harness", arguments) as context:
            result = command.invoke(context)
    except click.exceptions.Exit as exc:
        result = exc.exit_code
    sys.stdout.flush()
    return int(result) if isinstance(result, int) else 0


def _configure_logging(verbosity: int, debug: bool) -> None:
    level = logging.DEBUG if verbosity > 1 or debug else logging.INFO if verbosity else logging.WARNING
    logging.basicConfig(level=level, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s", force=True)
    # pyOCD logs every failed attempt as an error, where the harness says in one sentence what happened: only for -v.
    logging.getLogger("pyocd").setLevel(logging.NOTSET if level < logging.WARNING else logging.CRITICAL)


def _interrupted(*, as_json: bool) -> int:
    print("interrupted", file=sys.stderr)
    if as_json:
        remedy = "the same command goes on where it can, or begins again"
        _print_document(_coded("interrupted", remedy, "interrupted", ExitCode.INTERRUPTED))
    return int(ExitCode.INTERRUPTED)


def _pipe_closed() -> int:
    _drop_stdout()
    return BROKEN_PIPE_EXIT


def _has_lost_reader() -> bool:
    """Whether nobody reads the standard output, or the standard error, any more."""
    poll = select.poll()
    for handle in (1, 2):
        poll.register(handle, 0)
    return bool(poll.poll(0))


def _drop_stdout() -> None:
    """Python would complain once more when it flushes stdout at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _require_streams() -> None:
    """Whoever starts the tool with stdin, stdout or stderr closed (``>&-``) gets the null device there: the next file
    to be opened, a port or a record, would otherwise become the standard output of every child."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8, a file name that is no text


def _as_harness_error(exc: Exception) -> HarnessError:
    """Every exception as an error with a remedy. Foreign ones that reach this place were not foreseen."""
    if isinstance(exc, HarnessError):
        return exc
    if isinstance(exc, click.UsageError):
        return _usage_error(exc)
    if isinstance(exc, click.ClickException):
        return _coded(exc.format_message(), "see harness --help", "usage", ExitCode.USAGE)
    if isinstance(exc, MemoryError):
        return _coded("out of memory", "close other programs, or take a smaller model", "memory", ExitCode.ENVIRONMENT)
    if isinstance(exc, OSError):
        return _os_error(exc)
    text = safe_text(f"{type(exc).__name__}: {exc}")
    remedy = "run again with --debug and report what it prints"
    return InternalError(f"a bug of harness: {text}", remedy=remedy)


def _usage_error(exc: click.UsageError) -> HarnessError:
    where = exc.ctx.command_path if exc.ctx else "harness"
    return _coded(safe_text(exc.format_message(), 500), f"see {where} --help", "usage", ExitCode.USAGE)


def _os_error(exc: OSError) -> HarnessError:
    where = f"{safe_text(str(exc.filename))}: " if exc.filename else ""
    text = f"{where}{exc.strerror or str(exc) or type(exc).__name__}"
    if is_disk_full(exc):
        return DiskFullError(text, remedy="free some space on that disk and run again")
    if exc.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return _coded(text, "choose a place that you may write to", "file.denied", ExitCode.USAGE)
    if isinstance(exc, ConnectionError | TimeoutError) or exc.errno == errno.EPIPE:
        return _coded(text, "check what is at the other end, and run again", "connection", ExitCode.LINK)
    return _coded(text, "check the path", "file", ExitCode.USAGE)


def _coded(message: str, remedy: str, code: str, exit_code: ExitCode) -> HarnessError:
    error = HarnessError(message, remedy=remedy, code=code)
    error.exit_code = exit_code
    return error


def _report(error: HarnessError, *, as_json: bool) -> None:
    print(f"error: {error.message}", file=sys.stderr)
    if error.remedy:
        print(f"  {error.remedy}", file=sys.stderr)
    if as_json:
        _print_document(error)


def _print_document(error: HarnessError) -> None:
    try:
        print(json.dumps(error_document(error)), flush=True)
    except OSError:
        _drop_stdout()  # what could not be written is said on stderr
