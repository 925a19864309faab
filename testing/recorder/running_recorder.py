"""`Recorder`: the proxy in a thread of this process, for tests and programs.

with odradek.testing.Recorder("localhost:9092", capture="run.odr") as recorder:
    producer = KafkaProducer(bootstrap_servers=recorder.bootstrap_servers)
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import trio

from .addresses import Address
from .capture_file import CaptureWriter
from .pcapng import PcapngWriter
from .proxied_connection import FRAME_BYTES_MAX
from .proxy import ANY_PORT, Proxy, single_cause
from .recording import Recording, RecordingListener

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 60.0


class Recorder:
    """A proxy before the brokers of a cluster; it listens when the constructor returns.

    Args:
        upstream: HOST:PORT of a broker of the cluster.
        capture: where a capture is to be written; the file must not exist.
        pcap: where one for Wireshark is to be written, likewise.
        listener: gets everything too, in the proxy's thread.
        listen: HOST:PORT where clients come; port 0 takes a free one.
        frame_bytes_max: larger frames end their connection.

    Raises:
        ValueError: an address is none.
        OSError: a file cannot be made.
        ListenError: it cannot listen there.
    """

    def __init__(
        self,
        upstream: str,
        *,
        capture: str | os.PathLike[str] | None = None,
        pcap: str | os.PathLike[str] | None = None,
        listener: RecordingListener | None = None,
        listen: str = str(ANY_PORT),
        frame_bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        broker, here = Address.parse(upstream), Address.parse(listen)
        self._upstream = broker
        self._writers: list[CaptureWriter | PcapngWriter] = []
        if capture is not None:
            self._writers.append(CaptureWriter(Path(capture)))
        if pcap is not None:
            self._writers.append(PcapngWriter(Path(pcap)))
        self._recording = Recording([*self._writers, *([listener] if listener else [])])
        self._proxy = Proxy(broker, self._recording, listen=here, frame_bytes_max=frame_bytes_max)
        self._listens = threading.Event()
        self._failure: BaseException | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._scope = trio.CancelScope()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()
        if not self._listens.wait(START_SECONDS_MAX):
            self._failure = TimeoutError(f"no listener within {START_SECONDS_MAX:.0f} s")
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self.close()
            raise failure

    @property
    def bootstrap_servers(self) -> str:
        """The address to give to clients."""
        return str(self._proxy.bootstrap)

    @property
    def failures(self) -> list[str]:
        """A sentence for each file that could not be written to the end."""
        return list(self._recording.failures)

    def close(self) -> None:
        """End all connections and close the files; it may be called again.

        Raises:
            TimeoutError: the proxy did not end.
            RuntimeError: it had ended before, by an error.
        """
        if self._token is not None and self._thread.is_alive():
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._scope.cancel)
        self._thread.join(STOP_SECONDS_MAX)
        if self._thread.is_alive():
            raise TimeoutError(f"the recorder did not end within {STOP_SECONDS_MAX:.0f} s")
        for writer in self._writers:
            writer.close()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise RuntimeError(f"the recorder had ended before: {failure!r}") from failure

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:  # it belongs to who waits
            self._failure = single_cause(error)
        finally:
            self._listens.set()

    async def _serve(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with self._scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._proxy.run)
                self._listens.set()

    def __repr__(self) -> str:
        state = "" if self._thread.is_alive() else ", closed"
        return f"<recorder at {self.bootstrap_servers} before {self._upstream}{state}>"

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
