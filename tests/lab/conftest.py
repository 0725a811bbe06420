"""Servers that the tests of the lab start for themselves."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

#: Ports that were free a moment ago are tried so often: another program may take one in between.
PORT_TRIES = 20


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """A port of this computer that refuses connections: bound, so that nobody else gets it, and not listened on."""
    with contextlib.closing(socket.socket()) as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def free_port() -> int:
    """One that was free a moment ago. Whoever gives it to a program tries again with another when it was taken."""
    with silent_port() as port:
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
        folder = Path(name)
        folder.chmod(0o755)
        data, password_file = folder / "data", folder / "password"
        password_file.write_text("s3cr@t:/x")
        password_file.chmod(0o644)
        data.mkdir()
        if as_user:
            shutil.chown(data, "postgres")
            shutil.chown(folder, "postgres")

        def program(command: str, *arguments: str, check: bool = True) -> bool:
            argv = [*as_user, str(programs / command), *arguments]
            done = subprocess.run(argv, check=check, stdout=subprocess.DEVNULL, cwd=name, timeout=PATIENCE_S)
            return done.returncode == 0

        def start() -> int:
            """On a port that nobody has; the port."""
            for _ in range(PORT_TRIES):
                port = free_port()
                options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={name} -c fsync=off"
                wait = ("-w", "-t", f"{PATIENCE_S:.0f}")
                if program(
                    "pg_ctl", "-D", str(data), "-o", options, "-l", str(folder / "log"), *wait, "start", check=False
                ):
                    return port
            pytest.fail(f"PostgreSQL does not start: {(folder / 'log').read_text()[-2000:]}")

        program("initdb", "-D", str(data), "-U", "lab", "-A", "scram-sha-256", f"--pwfile={password_file}", "-N")
        port = start()
        try:
            yield f"postgresql://lab:s3cr%40t%3A%2Fx@127.0.0.1:{port}"
        finally:
            program("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """A fresh database on it."""
    import psycopg

    name = f"history_{uuid.uuid4().hex}"
    with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{postgres_server}/{name}"
