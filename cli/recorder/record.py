"""`odradek record`: a proxy that shows and keeps what clients and brokers say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..common.errors import fail
from ..common.show import note
from ..declarations import Option
from ..log.folders import plural

if TYPE_CHECKING:
    from ...testing.recorder.addresses import Address
    from ...testing.recorder.capture_file import CaptureWriter
    from ...testing.recorder.pcapng import PcapngWriter

DEFAULT_LISTEN = "127.0.0.1:9192"


def record(
    upstream: Annotated[
        str,
        Option(
            "--upstream",
            "-u",
            metavar="HOST:PORT",
            help="A broker of the cluster to be recorded.",
            show_default=False,
        ),
    ],
    listen: Annotated[
        str,
        Option(
            "--listen",
            metavar="HOST:PORT",
            help="Where clients come. Further brokers get the free ports that follow, or any if"
            " the port is 0.",
        ),
    ] = DEFAULT_LISTEN,
    advertised_host: Annotated[
        str | None,
        Option(
            "--advertised-host",
            metavar="HOST",
            help="What clients see in place of brokers' hosts; by default the address by"
            " which they came here.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="FILE", help="Write a capture, for odradek replay."),
    ] = None,
    pcap: Annotated[
        Path | None,
        Option("--pcap", metavar="FILE", help="Write a capture for Wireshark (pcapng)."),
    ] = None,
    full: Annotated[bool, Option("--full", help="Show all of each message, records too.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Show no frames.")] = False,
) -> None:
    """Stand between clients and brokers, and show what they say, until Ctrl-C.

    ```
    odradek record --upstream localhost:9092
    odradek record --upstream localhost:9092 --full
    odradek record -u broker:9092 --quiet --out run.capture --pcap run.pcapng
    odradek record --upstream broker:9092 --listen 0.0.0.0:9192
    ```

    Give clients the address that is printed at the start, in place of their broker's: the other
    brokers of the cluster they hear of through it, at further ports of it. Nothing else changes
    for them. A line is: the time, the number of the connection, -> for a request or <- for its
    answer, the API, its version, the request's number, and what is in it beside defaults.

    Passwords are neither shown nor kept. Records are kept, so a capture is as confidential as they
    are. TLS is not understood: have clients speak plain text to here, and here to the broker.

    Wireshark takes port 9092 for Kafka; for another: wireshark -d tcp.port==PORT,kafka FILE
    """
    from ...testing.recorder.addresses import Address

    try:
        addresses = Address.parse(upstream), Address.parse(listen)
    except ValueError as error:
        fail(str(error))
    writers = _writers(out, pcap)
    try:
        failures = _record(*addresses, advertised_host, writers, full, quiet)
    finally:
        for writer in writers:
            writer.close()
    if failures:
        fail("; ".join(failures))


def _writers(out: Path | None, pcap: Path | None) -> list[CaptureWriter | PcapngWriter]:
    """What writes the files that were requested."""
    from ...testing.recorder.capture_file import CaptureWriter
    from ...testing.recorder.pcapng import PcapngWriter

    made: list[CaptureWriter | PcapngWriter] = []
    try:
        if out is not None:
            made.append(CaptureWriter(out))
        if pcap is not None:
            made.append(PcapngWriter(pcap))
    except FileExistsError as error:
        fail(f"{error.filename} is there already; name another file")
    return made


def _record(
    upstream: Address,
    listen: Address,
    advertised_host: str | None,
    writers: list[CaptureWriter | PcapngWriter],
    is_full: bool,
    is_quiet: bool,
) -> list[str]:
    """Record until a signal comes; returns what went wrong with files."""
    import signal

    import trio

    from ...testing.recorder.proxy import ListenError, Proxy, single_cause
    from ...testing.recorder.recording import Recording, RecordingListener
    from ...testing.recorder.screen import RecordingScreen

    screen = RecordingScreen(_write, is_full=is_full)
    listeners: list[RecordingListener] = [*writers, *([] if is_quiet else [screen])]
    recording = Recording(listeners)
    proxy = Proxy(upstream, recording, listen=listen, advertised_host=advertised_host)

    async def run() -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                where = await nursery.start(proxy.run)
                note(f"recording {upstream} at {where}, until Ctrl-C")
                nursery.start_soon(screen.run)
                if not await proxy.finds_broker():
                    note(f"no broker answers at {upstream} yet; clients can connect once one does")
                async for _ in signals:
                    nursery.cancel_scope.cancel()
                    break

    try:
        trio.run(run)
    except BaseExceptionGroup as group:
        error = single_cause(group)
        if isinstance(error, ListenError):
            fail(str(error))
        raise error from None
    files = " and ".join(str(writer.path) for writer in writers)
    kept = f" to {files}" if files else ""
    connections = plural(recording.connections_count, "connection")
    note(f"recorded {plural(recording.frames_count, 'frame')} of {connections}{kept}")
    return recording.failures


def _write(text: str) -> None:
    """Put lines on standard output, which may not have all of their characters."""
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding, "backslashreplace"))
    sys.stdout.buffer.flush()
