"""Captures for Wireshark: pcapng with packets made up around the frames.

The proxy sees streams, not packets. So each connection gets a handshake, segments with sequence
numbers and checksums, and an end, as if client and broker had spoken to each other directly. The
Ethernet addresses are made up. Wireshark takes port 9092 for Kafka; for another tell it, by
"Decode As" or `-d tcp.port==PORT,kafka`.
"""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from ...protocol.varints import Buffer
from .addresses import Address
from .recording import RecordedConnection, RecordedEnd, RecordedFrame, RecordedNote

SEGMENT_BYTES_MAX = 32 << 10
"""Of a frame in one packet; an IPv4 packet has room for 64 KiB."""

SECTION_HEADER, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
BYTE_ORDER_MAGIC = 0x1A2B3C4D
ETHERNET = 1
END_OF_OPTIONS, COMMENT, TIME_RESOLUTION, APPLICATION = 0, 1, 9, 4
NANOSECONDS = 9

CLIENT_MAC, BROKER_MAC = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
ETHERTYPES = {4: b"\x08\x00", 6: b"\x86\xdd"}
TCP = 6
HOPS_MAX = 64
WINDOW = 0xFFFF
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
FIRST_CLIENT_SEQUENCE, FIRST_BROKER_SEQUENCE = 1000, 5000
SEQUENCE_MASK = 0xFFFFFFFF

BLOCK_HEAD = Struct("<II")
SECTION_BODY = Struct("<IHHq")
INTERFACE_BODY = Struct("<HHI")
PACKET_BODY = Struct("<IIIII")
OPTION_HEAD = Struct("<HH")
IPV4 = Struct(">BBHHHBBH4s4s")
IPV6 = Struct(">IHBB16s16s")
TCP_HEADER = Struct(">HHIIBBHHH")


class Side(NamedTuple):
    """Who sends a packet: an address in bytes, a port and a MAC."""

    ip: bytes
    port: int
    mac: bytes


class _Flow:
    """One connection's packets."""

    def __init__(self, connection: RecordedConnection) -> None:
        client, broker = _ip(connection.client), _ip(connection.broker)
        if len(client) != len(broker):
            client, broker = _as_ipv6(client), _as_ipv6(broker)
        sides = (
            Side(client, connection.client.port, CLIENT_MAC),
            Side(broker, connection.broker.port, BROKER_MAC),
        )
        self._sides = (sides, sides[::-1])
        self._sequences = [FIRST_CLIENT_SEQUENCE, FIRST_BROKER_SEQUENCE]

    def packet(self, sender: int, flags: int, payload: Buffer = b"") -> list[Buffer]:
        """The next packet of the client (0) or the broker (1), in pieces."""
        source, target = self._sides[sender]
        sequence, acknowledged = self._sequences[sender], self._sequences[1 - sender]
        if not flags & ACK:
            acknowledged = 0
        used = len(payload) + bool(flags & (SYN | FIN))
        self._sequences[sender] = (sequence + used) & SEQUENCE_MASK
        size = TCP_HEADER.size + len(payload)
        fields = [source.port, target.port, sequence, acknowledged, 0x50, flags, WINDOW, 0, 0]
        pseudo = source.ip + target.ip + TCP.to_bytes(4, "big") + size.to_bytes(4, "big")
        fields[7] = internet_checksum(pseudo, TCP_HEADER.pack(*fields), payload)
        ip = _ip_header(source.ip, target.ip, size)
        ethertype = ETHERTYPES[4 if len(source.ip) == 4 else 6]
        return [target.mac, source.mac, ethertype, ip, TCP_HEADER.pack(*fields), payload]


class PcapngWriter:
    """Writes a capture for Wireshark: a `Listener`.

    Args:
        path: of a file that does not exist yet.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._descriptor = os.open(path, flags, 0o600)
        self._size = 0
        self._flows: dict[int, _Flow] = {}
        section = SECTION_BODY.pack(BYTE_ORDER_MAGIC, 1, 0, -1) + _option(APPLICATION, b"odradek")
        section += _option(COMMENT, b"packets are made up around the frames of a proxy")
        interface = INTERFACE_BODY.pack(ETHERNET, 0, 0)
        interface += _option(TIME_RESOLUTION, bytes([NANOSECONDS]))
        self._write([*_block(SECTION_HEADER, [section + _option(END_OF_OPTIONS)])])
        self._write([*_block(INTERFACE, [interface + _option(END_OF_OPTIONS)])])

    def opened(self, connection: RecordedConnection) -> None:
        """A connection was made: three packets."""
        flow = self._flows[connection.number] = _Flow(connection)
        for sender, flags in ((0, SYN), (1, SYN | ACK), (0, ACK)):
            self._write(_packet(connection.time_ns, flow.packet(sender, flags)))

    def passed(self, frame: RecordedFrame) -> None:
        """A frame has come whole: a packet, or several for a large one."""
        flow = self._flows.get(frame.connection)
        if flow is None:
            return
        sender = 0 if frame.kind.is_from_client else 1
        content = memoryview(frame.content)
        length = len(content).to_bytes(4, "big")
        first = length + bytes(content[:SEGMENT_BYTES_MAX])
        self._write(_packet(frame.time_ns, flow.packet(sender, PSH | ACK, first)))
        for position in range(SEGMENT_BYTES_MAX, len(content), SEGMENT_BYTES_MAX):
            piece = content[position : position + SEGMENT_BYTES_MAX]
            self._write(_packet(frame.time_ns, flow.packet(sender, PSH | ACK, piece)))

    def ended(self, end: RecordedEnd) -> None:
        """A connection is over."""
        flow = self._flows.pop(end.number, None)
        if flow is None:
            return
        first = 0 if end.is_by_client else 1
        for sender, flags in ((first, FIN | ACK), (1 - first, FIN | ACK), (first, ACK)):
            self._write(_packet(end.time_ns, flow.packet(sender, flags)))

    def noted(self, note: RecordedNote) -> None:
        """Notes have no place among packets."""

    def close(self) -> None:
        """Close the file; it may be called again."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _write(self, parts: list[Buffer]) -> None:
        """Write a block, or raise OSError and leave nothing of it."""
        size = sum(map(len, parts))
        try:
            written = os.writev(self._descriptor, parts)
            while written < size:
                written += os.write(self._descriptor, memoryview(b"".join(parts))[written:])
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += size


def internet_checksum(*parts: Buffer) -> int:
    """The ones' complement of the ones' complement sum of the parts' 16-bit words (RFC 1071).

    Args:
        parts: each but the last of an even length.
    """
    total = 0
    for part in parts:
        value = int.from_bytes(part, "big")
        # A number modulo 2^16 - 1 is the sum of its 16-bit digits.
        total += (value << 8 if len(part) % 2 else value) % 0xFFFF
    return -total % 0xFFFF  # a packet is never all zeros, where this would be 0xffff


def _ip_header(source: bytes, target: bytes, size: int) -> bytes:
    if len(source) == 16:
        return IPV6.pack(6 << 28, size, TCP, HOPS_MAX, source, target)
    fields = [0x45, 0, IPV4.size + size, 0, 0x4000, HOPS_MAX, TCP, 0, source, target]
    fields[7] = internet_checksum(IPV4.pack(*fields))
    return IPV4.pack(*fields)


def _ip(address: Address) -> bytes:
    try:
        return ip_address(address.host.partition("%")[0]).packed
    except ValueError:
        return bytes(4)


def _as_ipv6(packed: bytes) -> bytes:
    return packed if len(packed) == 16 else bytes(10) + b"\xff\xff" + packed


def _option(code: int, value: bytes = b"") -> bytes:
    return OPTION_HEAD.pack(code, len(value)) + value + bytes(-len(value) % 4)


def _packet(time_ns: int, pieces: list[Buffer]) -> list[Buffer]:
    size = sum(map(len, pieces))
    body = PACKET_BODY.pack(0, time_ns >> 32, time_ns & 0xFFFFFFFF, size, size)
    return _block(PACKET, [body, *pieces])


def _block(kind: int, body: list[Buffer]) -> list[Buffer]:
    size = sum(map(len, body))
    padding = bytes(-size % 4)
    total = BLOCK_HEAD.size + size + len(padding) + 4
    return [BLOCK_HEAD.pack(kind, total), *body, padding + total.to_bytes(4, "little")]
