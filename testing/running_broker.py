"""`Broker`: a real broker for tests, there in a fraction of a second and gone with them.

    with odradek.testing.Broker() as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

It is a process of its own, so any client of any language can use it, and killing it is a real
kill. Its data lie in a temporary folder that outlives restarts and goes when it is closed, or
when the process that made it is gone, however that one ended.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..config.listeners import external_settings
from .client_settings import Sasl, TlsFiles, security_protocol
from .control.broker_under_test import BrokerUnderTest
from .control.framing import TOKEN_VARIABLE
from .outages.breakable_process import BreakableProcess
from .process.broker_process import BrokerStartError
from .process.held_port import HeldPort
from .process.process_end import Guard
from .process.secret_settings import SECRET_SETTINGS, SETTINGS_VARIABLE

if TYPE_CHECKING:
    from .control.client import ControlClient

TEST_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "odradek.await.topic.creation": "true",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
"""What differs from Kafka's defaults: nobody waits for members to come, clients need not come again
for a topic that is made when it is first used, and internal topics have few partitions. A test's
own settings stand before these."""


class Broker(BrokerUnderTest, BreakableProcess):
    """A broker for tests; it is ready when the constructor returns.

    Args:
        settings: broker settings by Kafka's names.
        listen: HOST:PORT of its listener; port 0 takes a free one.
        exit_with: the process with which it ends at the latest; None: this one.
        leftovers: further folders to be removed if that process does not end it itself.
        tls: whether clients must speak TLS, with certificates made for it, or with these; whether
            they must show one themselves is a setting, `ssl.client.auth`.
        sasl: the mechanism by which clients must log in, with an administrator made for it, or
            with this one.
        acls: whether clients may do only what ACLs allow, but for the administrator.
        log_dirs: how many log directories it has; with several, the cluster's metadata are in
            none of them.
        external: HOST or HOST:PORT by which containers and other hosts know this machine, such as
            host.docker.internal; it has a second listener then, on all interfaces, that clients
            from there use. Without a port it takes a free one.

    Attributes:
        folder: holds its data and its log, until `close`.
        tls: the certificates, of clients too; None if it is plain.
        sasl: how clients log in, and the administrator; None if they do not.
        control_token: opens its control channel, at `control_address`.

    Raises:
        BrokerStartError: it did not become ready; the text holds its log.
    """

    own_session = True

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        listen: str = "127.0.0.1:0",
        exit_with: int | None = None,
        leftovers: Sequence[Path] = (),
        tls: bool | TlsFiles = False,
        sasl: str | Sasl | None = None,
        acls: bool = False,
        log_dirs: int = 1,
        external: str | None = None,
    ) -> None:
        __tracebackhide__ = True
        if os.name == "nt":
            raise BrokerStartError(
                "odradek's broker runs on Linux and macOS; on Windows run tests in WSL, or name a "
                "Kafka that runs already by --kafka-bootstrap-servers"
            )
        self.folder = Path(tempfile.mkdtemp(prefix="odradek-"))
        self._exit_with = os.getpid() if exit_with is None else exit_with
        self._leftovers = (self.folder, *leftovers)
        self.control_token = secrets.token_hex(32)
        self._control: ControlClient | None = None
        self.tls: TlsFiles | None = None
        self._is_closed = False
        self._guard_of_folder: Guard | None = None
        self._external_port: HeldPort | None = None
        self._external_host = ""
        atexit.register(self.close)
        try:
            if external is not None:
                self._listen_outside(external, has_logins=sasl is not None)
            super().__init__(
                self.folder / "data",
                listen=listen,
                settings={
                    **TEST_SETTINGS,
                    **self._secure(tls),
                    **self._restrict(sasl, acls),
                    **_log_dirs(self.folder, log_dirs),
                    **(settings or {}),
                },
                log_path=self.folder / "log",
            )
        except BaseException:
            self.close()
            raise

    @property
    def bootstrap_servers(self) -> str:
        """The address to give to clients."""
        return self.bootstrap

    @property
    def is_external(self) -> bool:
        """Whether clients that are not on this machine have a listener."""
        return self._external_port is not None

    @property
    def external_bootstrap_servers(self) -> str:
        """The address to give to clients in containers, or on other hosts.

        Raises:
            RuntimeError: it has none, since it was made without `external`.
        """
        if self._external_port is None:
            raise RuntimeError(
                "this broker is for clients on this machine: make it with "
                "external='host.docker.internal', or what others know this machine by"
            )
        return f"{self._external_host}:{self._external_port.port}"

    def _listen_outside(self, external: str, *, has_logins: bool) -> None:
        """Keep a port for the listener for others."""
        if has_logins:
            raise ValueError(
                "external and sasl cannot be had together: users are a listener's; set listeners, "
                "advertised.listeners and the JAAS entries of both yourself (docs/security.md)"
            )
        host, colon, port = external.rpartition(":")
        self._external_host = host if colon else external
        try:
            self._external_port = HeldPort(int(port) if colon else 0, "0.0.0.0")
        except OSError as error:
            raise BrokerStartError(f"no listener for {external} can be had: {error}") from error

    @property
    def broker_id(self) -> int:
        """Its id in a cluster."""
        return int(self.settings.get("broker.id", "1"))

    def _secure(self, tls: bool | TlsFiles) -> dict[str, str]:
        """Have certificates, if it is to speak TLS; returns the settings that say so."""
        if not tls:
            return {}
        from .certificates import broker_settings, make_tls_files

        names = [self._external_host] if self._external_host else []
        made = tls if isinstance(tls, TlsFiles) else make_tls_files(self.folder / "tls", *names)
        self.tls = made
        return broker_settings(self.tls)

    def _restrict(self, sasl: str | Sasl | None, acls: bool) -> dict[str, str]:
        """Have an administrator, if clients are to log in; returns the settings that say so."""
        if sasl is None and not acls:
            return {}
        from .security.broker_security import ACL_SETTINGS, make_sasl, sasl_settings

        settings = dict(ACL_SETTINGS) if acls else {}
        if sasl is not None:
            self.sasl = sasl if isinstance(sasl, Sasl) else make_sasl(sasl)
            settings |= sasl_settings(self.sasl, tls=self.tls is not None)
        return settings

    def keep_plain_user(self, key: str, name: str, password: str | None) -> None:
        """Have a user of PLAIN be there, or not, after a restart; see `HasAccess`."""
        from .security.broker_security import with_plain_user

        self.settings[key] = with_plain_user(self.settings[key], name, password)

    def command(self) -> list[str]:
        """The command line of the next start."""
        command = [sys.executable, "-m", "odradek.testing.process.broker"]
        command += ["--listen", self.bootstrap, "--data-dir", str(self.data_dir)]
        command += ["--exit-with", str(self._exit_with), "--control"]
        for folder in self._leftovers:
            command += ["--leftover", str(folder)]
        protocol = security_protocol(tls=self.tls is not None, sasl=self.sasl is not None)
        listeners = {"listeners": f"{protocol}://{self.bootstrap}"}
        if self._external_port is not None:
            address = self.external_bootstrap_servers
            listeners = external_settings(listeners["listeners"], address)
        for key, value in listeners.items():
            command += ["-o", f"{key}={value}"]
        for key, value in self.settings.items():
            if not key.endswith(SECRET_SETTINGS):  # everybody on the machine sees command lines
                command += ["-o", f"{key}={value}"]
        return command + self.start_state.arguments() + self.arguments

    def environment(self) -> dict[str, str]:
        """The environment of the next start: this process's, the channel's token, and secrets."""
        secret = {k: value for k, value in self.settings.items() if k.endswith(SECRET_SETTINGS)}
        handed = {SETTINGS_VARIABLE: json.dumps(secret)} if secret else {}
        return {**os.environ, TOKEN_VARIABLE: self.control_token, **handed}

    def control(self) -> ControlClient:
        """The control channel of the running broker; another one after each start.

        Raises:
            ControlError: the broker is not running.
        """
        from .control.client import ControlClient, ControlError

        if not self.is_running:
            raise ControlError("the broker is not running, so there is nothing to ask of it")
        if self.is_frozen:
            raise ControlError("the broker is frozen, so it answers nothing until it thaws")
        if self._control is None or self._control.address != self.control_address:
            self._let_go_of_control()
            self._control = ControlClient(self.control_address, self.control_token)
        return self._control

    def reset(self) -> None:
        """Empty it; see `BrokerInspection.reset`. Its clock is right then, also after a restart."""
        super().reset()
        self.start_state = self.start_state._replace(ahead_ms=0, skew_ms=0)

    def start(self) -> None:
        """Start it and wait until it is ready; see `BrokerProcess.start`."""
        __tracebackhide__ = True
        super().start()
        self._end_guard_of_folder()

    def kill(self) -> None:
        """End it at once by SIGKILL; its data stay until `close`, or the end of its owner."""
        super().kill()
        if not (self._is_closed or self._is_forked) and self._guard_of_folder is None:
            folders = shlex.join(map(str, self._leftovers))
            self._guard_of_folder = Guard([self._exit_with], f"exec rm -rf -- {folders}")

    def _end_guard_of_folder(self) -> None:
        guard, self._guard_of_folder = self._guard_of_folder, None
        if guard is not None:
            guard.end()

    def release(self) -> None:
        """Leave it to the process with which it ends: this one has started it, and no more."""
        process, self._process = self._process, None
        atexit.unregister(self.kill)
        atexit.unregister(self.close)
        if process is not None:
            assert process.stdout is not None
            process.stdout.close()
            process.returncode = 0  # nobody waits for it here

    def _let_go_of_control(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def close(self) -> None:
        """End it, at once, and remove all it kept; it may be called again.

        In a fork of the process that made it, it is only forgotten.
        """
        self._is_closed = True
        atexit.unregister(self.close)
        self._let_go_of_control()
        self.kill()
        self.let_go_of_port()
        if self._external_port is not None:
            self._external_port.close()
        if self._is_forked:
            return
        self._end_guard_of_folder()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"pid {self.pid}" if self.is_running else "not running"
        if self.is_running and self.is_frozen:
            state += ", frozen"
        return f"<Kafka broker {self.broker_id} at {self.bootstrap_servers}, {state}>"


def _log_dirs(folder: Path, count: int) -> dict[str, str]:
    """The settings for several log directories in a folder; none for one."""
    if count == 1:
        return {}
    paths = [folder / "data", *(folder / f"data-{number}" for number in range(2, count + 1))]
    return {"log.dirs": ",".join(map(str, paths)), "metadata.log.dir": str(folder / "metadata")}
