"""Servers that the tests of the lab start for themselves."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _postgres_programs() -> Path:
    """The folder of initdb and pg_ctl."""
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    for folder in [*candidates, *([Path(found).parent] if found else [])]:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A real PostgreSQL of our own on the loopback; the URL of its server, without a database."""
    pytest.importorskip("sqlalchemy", reason="needs the extra postgres")
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    programs = _postgres_programs()
    # the server refuses to run as root
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if as_user and subprocess.run([*as_user, "true"], capture_output=True, check=False).returncode:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder, port = Path(name), free_port()
        folder.chmod(0o755)
        data, password_file = folder / "data", folder / "password"
        password_file.write_text("s3cr@t:/x")
        password_file.chmod(0o644)
        data.mkdir()
        if as_user:
            shutil.chown(data, "postgres")
            shutil.chown(folder, "postgres")

        def program(command: str, *arguments: str) -> None:
            argv = [*as_user, str(programs / command), *arguments]
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd=name, timeout=120)

        program("initdb", "-D", str(data), "-U", "lab", "-A", "scram-sha-256", f"--pwfile={password_file}", "-N")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={name} -c fsync=off"
        program("pg_ctl", "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"postgresql://lab:s3cr%40t%3A%2Fx@127.0.0.1:{port}"
        finally:
            program("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """A fresh database on it."""
    import psycopg

    name = f"history_{free_port()}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{postgres_server}/{name}"
