"""The command line: one file per command, the error boundary and the exit codes."""
