"""Set up the embedded Postgres: a demonstration source with logical decoding enabled."""

import os
import pwd
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts.lock_file import postgres_set, set_dir
from cdc.stack.process.process import Command
from cdc.stack.servers.server import LOOPBACK
from cdc.state.directory import StateDir

DATABASE = "app"
SUPERUSER = "postgres"

_SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "wal_level": "logical",
    # An unread slot must not fill the disk: better to lose the slot than the database.
    "max_slot_wal_keep_size": "4GB",
    "max_replication_slots": "10",
    "max_wal_senders": "10",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "wal_sender_timeout": "60s",
    "timezone": "UTC",
}

_INITIAL = (
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    # Postgres' built-in locale sorts texts alike on every machine and needs no installation.
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
)


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """Prepares the embedded Postgres server, which listens on the loopback address only."""

    state: StateDir
    port: int
    name: str = "postgres"

    @property
    def url(self) -> str:
        """Return the URL of the database, with the superuser's password."""
        password = quote(self._password(), safe="")
        return f"postgresql://{SUPERUSER}:{password}@{LOOPBACK}:{self.port}/{DATABASE}"

    def _password(self) -> str:
        return self.state.secret("postgres")

    @property
    def _data(self) -> Path:
        return self.state.data(self.name)

    def prepare(self) -> None:
        """Run initdb once, into a folder that gets its final name when it is complete."""
        if self._data.exists():
            return
        partial = self._data.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        _give_to_server_user(partial)
        self._initdb(partial)
        partial.rename(self._data)

    def _initdb(self, target: Path) -> None:
        password_file = target.with_suffix(".password")
        password_file.write_text(self._password())
        password_file.chmod(0o600)
        _give_to_server_user(password_file)
        options = ["-D", str(target), "-U", SUPERUSER, f"--pwfile={password_file}"]
        command = [*_as_server_user(), str(_binary("initdb")), *options, *_INITIAL]
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
        password_file.unlink()
        if result.returncode != 0:
            raise CdcError(
                ErrorKind.SERVER_FAILED,
                "postgres could not be initialised",
                detail=(result.stderr or result.stdout).strip()[-500:],
            )

    def command(self) -> Command:
        """Return the command that starts the server, as another user if we are root."""
        settings = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        arguments = ["-D", str(self._data), "-p", str(self.port), *settings]
        return Command(
            arguments=(*_as_server_user(), str(_binary("postgres")), *arguments),
            directory=Path("/"),
            stop_signal=signal.SIGINT,  # fast shutdown: ends sessions, loses nothing
        )

    def is_ready(self) -> bool:
        """Return whether the server accepts a login; the first time, create the database."""
        try:
            with self._login() as connection:
                _create_database(connection)
        except psycopg.OperationalError:
            return False
        return True

    def _login(self) -> psycopg.Connection:
        return psycopg.connect(
            host=LOOPBACK,
            port=self.port,
            user=SUPERUSER,
            password=self._password(),
            dbname="postgres",
            connect_timeout=5,
            autocommit=True,
        )


def _create_database(connection: psycopg.Connection) -> None:
    existing = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
    if existing.fetchone() is None:
        connection.execute(f"CREATE DATABASE {DATABASE}")


def _binary(name: str) -> Path:
    return set_dir(postgres_set()) / "bin" / name


def _as_server_user() -> list[str]:
    """Return the prefix that starts Postgres as an ordinary user, because it refuses root.

    That user may be unable to reach a state directory below a private parent, such as root's home.
    A single capability lets the server pass and read directories, nothing else; with
    ``no_setuid_fixup``, access(2), which Postgres calls first, respects it. No parent's mode is
    changed.
    """
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        raise CdcError(
            ErrorKind.PREREQUISITE,
            "postgres refuses to run as root, and setpriv to start it as another user is missing",
            remedy="install util-linux, or run wal2lake as an ordinary user",
        )
    user = _server_user()
    command = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    if capability := _reach_capability():
        command += ["--securebits=+no_setuid_fixup", f"--inh-caps=+{capability}"]
        command += [f"--ambient-caps=+{capability}"]
    return command


def _server_user() -> pwd.struct_passwd:
    users = {user.pw_name: user for user in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in users:
            return users[name]
    raise CdcError(
        ErrorKind.PREREQUISITE,
        "postgres refuses to run as root, and there is no user postgres or nobody to run it as",
        remedy="run wal2lake as an ordinary user",
    )


def _reach_capability() -> str | None:
    """Return the weakest capability we hold that reaches through private directories, or None.

    Containers often withhold the first. Without both, the server's user must be able to enter
    every parent directory.
    """
    bits = {"dac_read_search": 2, "dac_override": 1}
    status = Path("/proc/self/status").read_text().splitlines()
    (held,) = (int(line.split()[1], 16) for line in status if line.startswith("CapBnd:"))
    return next((name for name, bit in bits.items() if held >> bit & 1), None)


def _give_to_server_user(path: Path) -> None:
    if os.geteuid() == 0:
        user = _server_user()
        os.chown(path, user.pw_uid, user.pw_gid)
