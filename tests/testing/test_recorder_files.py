"""Captures and what is in them: whole after a kill, without secrets, harmless on a screen."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest

from odradek.protocol import encode_body
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import request_header, response_header
from odradek.protocol.messages import (
    AlterUserScramCredentialsRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    FetchResponse,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from odradek.testing.recorder.addresses import Address
from odradek.testing.recorder.capture_file import (
    ENTRY_BYTES_MAX,
    HEAD,
    CaptureError,
    CaptureReader,
    CaptureWriter,
    Entry,
)
from odradek.testing.recorder.pcapng import PcapngWriter, internet_checksum
from odradek.testing.recorder.reading import read
from odradek.testing.recorder.recording import (
    FrameKind,
    RecordedConnection,
    RecordedEnd,
    RecordedFrame,
    RecordedNote,
    Recording,
)
from odradek.testing.recorder.redaction import redacted
from odradek.testing.recorder.screen import RecordingScreen, lines_of

NOW = 1_700_000_000_000_000_000


def recorded_frame(
    content: bytes, api_key: int = ApiKey.METADATA, version: int = 9, is_answer: bool = False
) -> RecordedFrame:
    kind = FrameKind.ANSWER if is_answer else FrameKind.REQUEST
    waited_ns = 1_500_000 if is_answer else 0
    return RecordedFrame(kind, 1, NOW, api_key, version, 7, content, False, waited_ns)


def request(message: object, api_key: int, version: int) -> bytes:
    return request_header(api_key, version, 7, "app") + encode_body(message, version)  # type: ignore[arg-type]  # any message


METADATA = request(MetadataRequest(topics=None), ApiKey.METADATA, 9)
ENTRIES: list[Entry] = [
    RecordedNote(NOW, "begun"),
    RecordedConnection(
        1, NOW, Address("127.0.0.1", 5000), Address("10.0.0.1", 9092), Address("kafka", 9092)
    ),
    recorded_frame(METADATA),
    recorded_frame(b"\0\0\0\7", is_answer=True),
    recorded_frame(b"")._replace(kind=FrameKind.TOKEN, api_key=-1, is_redacted=True),
    RecordedEnd(1, NOW, True, "enough"),
]


def write(listener: CaptureWriter | PcapngWriter, entries: list[Entry]) -> None:
    for entry in entries:
        if isinstance(entry, RecordedFrame):
            listener.passed(entry)
        elif isinstance(entry, RecordedConnection):
            listener.opened(entry)
        elif isinstance(entry, RecordedEnd):
            listener.ended(entry)
        else:
            listener.noted(entry)


def same(entry: Entry) -> Entry:
    return (
        entry._replace(content=bytes(entry.content)) if isinstance(entry, RecordedFrame) else entry
    )


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "capture"
    writer = CaptureWriter(path)
    write(writer, ENTRIES)
    writer.close()
    return path


def entries_of(path: Path) -> tuple[list[Entry], int | None]:
    reader = CaptureReader(path)
    return [same(entry) for entry in reader], reader.torn_at


# --- Captures -------------------------------------------------------------------------------


def test_a_capture_is_read_as_it_was_written(capture: Path) -> None:
    assert entries_of(capture) == (ENTRIES, None)
    assert capture.stat().st_mode & 0o777 == 0o600


def test_a_capture_that_breaks_off_anywhere_is_read_up_to_there(capture: Path) -> None:
    whole = capture.read_bytes()
    ends = [8]
    while ends[-1] < len(whole):
        ends.append(ends[-1] + HEAD.size + HEAD.unpack_from(whole, ends[-1])[0])
    for size in sorted({*range(8, len(whole), 7), *ends, *(end - 1 for end in ends[1:])}):
        capture.write_bytes(whole[:size])
        found, torn_at = entries_of(capture)
        complete = sum(end <= size for end in ends) - 1
        assert found == ENTRIES[:complete]
        assert torn_at == (None if size in ends else ends[complete])


def test_a_last_entry_of_which_the_disk_kept_a_part_is_a_torn_one(capture: Path) -> None:
    whole = capture.read_bytes()
    capture.write_bytes(whole[:-4] + bytes(4))
    found, torn_at = entries_of(capture)
    assert found == ENTRIES[:-1]
    assert torn_at is not None
    capture.write_bytes(whole + bytes(4096))
    assert entries_of(capture) == (ENTRIES, len(whole))


def test_damage_before_the_end_is_an_error_that_says_where(capture: Path) -> None:
    whole = bytearray(capture.read_bytes())
    whole[8 + HEAD.size + 3] ^= 1
    capture.write_bytes(whole)
    with pytest.raises(CaptureError, match=r"damaged at byte 8: the checksum"):
        entries_of(capture)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is no capture"),
        (b"ODRADEK", "is no capture"),
        (b"\x0a\x0d\x0d\x0a" * 10, "is no capture"),
        (b"ODRADEK\x02", "a capture of format 2; this odradek reads 1"),
        (b"ODRADEK\x01" + struct.pack(">II", ENTRY_BYTES_MAX + 1, 0), "cannot have"),
        (b"ODRADEK\x01" + struct.pack(">II", 0, 0) + b"x", "cannot have 0 bytes"),
    ],
)
def test_what_is_no_capture_is_said_to_be_none(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=sentence):
        entries_of(path)


def test_hostile_captures_give_entries_or_an_error(capture: Path) -> None:
    whole = capture.read_bytes()
    rng = random.Random(5)
    for _ in range(500):
        changed = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        capture.write_bytes(changed)
        try:
            found, _ = entries_of(capture)
        except CaptureError:
            continue
        for entry in found:
            assert all(line.endswith("\n") for line in lines_of(entry))


def test_an_entry_of_a_type_that_came_later_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    writer = CaptureWriter(path)
    writer._append(b"\xc8", b"of a later odradek")
    writer.noted(RecordedNote(NOW, "after"))
    writer.close()
    assert entries_of(path) == ([RecordedNote(NOW, "after")], None)


def test_a_capture_is_never_written_over(capture: Path) -> None:
    for writer in (CaptureWriter, PcapngWriter):
        with pytest.raises(FileExistsError):
            writer(capture)
    assert entries_of(capture) == (ENTRIES, None)


def test_a_full_disk_ends_the_capture_with_a_whole_entry_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    writer = CaptureWriter(tmp_path / "capture")
    notes: list[RecordedNote] = []

    class Notes(RecordingScreen):
        def noted(self, note: RecordedNote) -> None:
            notes.append(note)

    recording = Recording([writer, Notes(lines.append)])
    recording.note("before")
    real = os.writev

    def full(descriptor: int, parts: list[bytes]) -> int:
        real(descriptor, [bytes(parts[0])[:5]])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "writev", full)
    recording.passed(recorded_frame(METADATA))
    monkeypatch.undo()
    recording.note("after")
    writer.close()
    found, torn_at = entries_of(tmp_path / "capture")
    assert [entry.text for entry in found if isinstance(entry, RecordedNote)] == ["before"]
    assert (len(found), torn_at) == (1, None)
    assert len(recording.failures) == 1
    assert "No space left on device" in recording.failures[0]
    assert [note.text for note in notes] == ["before", recording.failures[0], "after"]


# --- Packets --------------------------------------------------------------------------------


def test_checksums_are_those_of_the_internet() -> None:
    # The example of RFC 1071, section 3: the sum of these words is ddf2.
    assert internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2
    # A header with its own checksum in place sums up to nothing.
    header = bytes.fromhex("450000730000400040 11b861c0a80001c0a800c7".replace(" ", ""))
    assert internet_checksum(header) == 0
    assert internet_checksum(b"\x01") == internet_checksum(b"\x01\x00")


def blocks_of(path: Path) -> list[tuple[int, bytes]]:
    data, position, found = path.read_bytes(), 0, []
    while position < len(data):
        kind, size = struct.unpack_from("<II", data, position)
        assert size % 4 == 0
        assert struct.unpack_from("<I", data, position + size - 4)[0] == size
        found.append((kind, data[position + 8 : position + size - 4]))
        position += size
    assert position == len(data)
    return found


@pytest.mark.parametrize(
    ("client", "broker", "header_bytes"),
    [("127.0.0.1", "10.0.0.1", 20), ("::1", "fe80::1%eth0", 40), ("127.0.0.1", "::1", 40)],
)
def test_packets_make_up_the_streams(
    tmp_path: Path, client: str, broker: str, header_bytes: int
) -> None:
    path = tmp_path / "p.pcapng"
    writer = PcapngWriter(path)
    addresses = Address(client, 5000), Address(broker, 9092), Address("kafka", 9092)
    large = os.urandom(100_001)
    writer.opened(RecordedConnection(1, NOW, *addresses))
    writer.passed(recorded_frame(METADATA))
    writer.passed(recorded_frame(large, is_answer=True))
    writer.ended(RecordedEnd(1, NOW, True))
    writer.passed(recorded_frame(METADATA))  # of no connection that is known
    writer.close()
    (section, _), (interface, _), *packets = blocks_of(path)
    assert (section, interface) == (0x0A0D0D0A, 1)
    streams: dict[int, bytes] = {5000: b"", 9092: b""}
    expected_sequence: dict[int, int] = {}
    for kind, body in packets:
        assert kind == 6
        _, high, low, size, _ = struct.unpack_from("<IIIII", body)
        assert (high << 32) + low == NOW
        segment = body[20 : 20 + size][14 + header_bytes :]
        source, _, sequence, _, offset, flags = struct.unpack_from(">HHIIBB", segment)
        assert sequence == expected_sequence.get(source, sequence)
        payload = segment[(offset >> 4) * 4 :]
        expected_sequence[source] = sequence + len(payload) + bool(flags & 3)
        streams[source] += payload
    assert streams[5000] == struct.pack(">i", len(METADATA)) + METADATA
    assert streams[9092] == struct.pack(">i", len(large)) + large


# --- Secrets --------------------------------------------------------------------------------

SECRET = b"correct-horse-battery"


def message_id(value: object) -> str:
    return str(value) if isinstance(value, int) else type(value).__name__


def secret_requests() -> list[tuple[object, int, int]]:
    scram = AlterUserScramCredentialsRequest
    configs = IncrementalAlterConfigsRequest
    config = configs.AlterableConfig(name="sasl.jaas.config", value=SECRET.decode())
    return [
        *(
            (SaslAuthenticateRequest(auth_bytes=SECRET), ApiKey.SASL_AUTHENTICATE, v)
            for v in (0, 2)
        ),
        (
            scram(upsertions=[scram.ScramCredentialUpsertion(name="a", salted_password=SECRET)]),
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            0,
        ),
        (RenewDelegationTokenRequest(hmac=SECRET), ApiKey.RENEW_DELEGATION_TOKEN, 2),
        (
            configs(resources=[configs.AlterConfigsResource(configs=[config])]),
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
        ),
    ]


def secret_answers() -> list[tuple[object, int, int]]:
    tokens = DescribeDelegationTokenResponse
    return [
        (SaslAuthenticateResponse(auth_bytes=SECRET), ApiKey.SASL_AUTHENTICATE, 1),
        (CreateDelegationTokenResponse(hmac=SECRET), ApiKey.CREATE_DELEGATION_TOKEN, 2),
        (
            tokens(tokens=[tokens.DescribedDelegationToken(hmac=SECRET)]),
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
            2,
        ),
    ]


@pytest.mark.parametrize(("message", "api_key", "version"), secret_requests(), ids=message_id)
def test_secrets_are_taken_out_of_requests(message: object, api_key: int, version: int) -> None:
    frame = request(message, api_key, version)
    assert SECRET in frame
    clean = redacted(api_key, version, frame, is_answer=False)
    assert clean is not None
    assert SECRET not in clean
    reading = read(recorded_frame(clean, api_key, version))
    assert (reading.client_id, reading.problem) == ("app", "")
    for cut in range(len(frame)):  # whatever is sent, nothing of it is kept
        assert SECRET[:3] not in (redacted(api_key, version, frame[:cut], is_answer=False) or b"")
    trailing = redacted(api_key, version, frame + SECRET, is_answer=False)
    assert trailing is not None
    assert SECRET not in trailing


@pytest.mark.parametrize(("message", "api_key", "version"), secret_answers(), ids=message_id)
def test_secrets_are_taken_out_of_answers(message: object, api_key: int, version: int) -> None:
    frame = response_header(api_key, version, 7) + encode_body(message, version)  # type: ignore[arg-type]  # any message
    assert SECRET in frame
    clean = redacted(api_key, version, frame, is_answer=True)
    assert clean is not None
    assert SECRET not in clean
    assert read(recorded_frame(clean, api_key, version, is_answer=True)).problem == ""
    unknown = redacted(api_key, 99, frame, is_answer=True)
    assert unknown is not None
    assert SECRET not in unknown


def test_what_holds_no_secret_is_left_alone() -> None:
    assert redacted(ApiKey.METADATA, 9, METADATA, is_answer=False) is None


# --- The screen -----------------------------------------------------------------------------


def test_a_line_tells_what_is_in_a_frame() -> None:
    message = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")])
    frame = recorded_frame(request(message, ApiKey.METADATA, 9))
    (line,) = lines_of(frame)
    assert line.endswith(" 1 -> Metadata v9 #7 (app) topics=[{name=orders}]\n")


@pytest.mark.parametrize("is_full", [False, True])
def test_nothing_that_is_sent_can_steer_a_terminal(is_full: bool) -> None:
    evil = "\x1b[2J\x9b2J\r\nfake"
    topic = MetadataRequest.MetadataRequestTopic(name=evil)
    content = request_header(ApiKey.METADATA, 9, 7, evil)
    content += encode_body(MetadataRequest(topics=[topic]), 9)
    lines = list(lines_of(recorded_frame(content), is_full=is_full))
    assert all(line[:-1].isprintable() for line in lines)
    assert any("fake" in line for line in lines)


@pytest.mark.parametrize(
    ("content", "api_key", "version", "reported"),
    [
        (METADATA, 999, 0, "API 999 v0 #7 (no known API, 19 bytes)"),
        (METADATA, ApiKey.METADATA, 99, "Metadata v99 #7 (no known version, 19 bytes)"),
        (METADATA[:-2], ApiKey.METADATA, 9, "Metadata v9 #7 (not understood: "),
        (METADATA + b"xy", ApiKey.METADATA, 9, "(2 bytes are left over after the message)"),
    ],
    ids=["api", "version", "cut off", "trailing"],
)
def test_what_is_not_understood_is_shown_as_such(
    content: bytes, api_key: int, version: int, reported: str
) -> None:
    frame = recorded_frame(content, api_key, version)
    assert reported in "".join(lines_of(frame))
    assert reported in "".join(lines_of(frame, is_full=True))


def test_hostile_messages_are_shown_in_bounded_text() -> None:
    partition = FetchResponse.PartitionData(records=b"\xff" * 5000, aborted_transactions=None)
    topic = FetchResponse.FetchableTopicResponse(topic="t" * 2000, partitions=[partition] * 3000)
    content = response_header(ApiKey.FETCH, 12, 7)
    content += encode_body(FetchResponse(responses=[topic] * 3), 12)
    rng = random.Random(6)
    for number in range(60):
        changed = bytearray(content[: 20_000 if number else len(content)])
        for _ in range(number):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        frame = recorded_frame(bytes(changed), ApiKey.FETCH, 12, is_answer=True)
        assert len("".join(lines_of(frame))) < 1000
        assert sum(1 for _ in lines_of(frame, is_full=True)) < 11_000


async def test_a_screen_that_stands_still_keeps_nobody_waiting() -> None:
    lines: list[str] = []
    screen = RecordingScreen(lines.append)
    frame = recorded_frame(bytes(1 << 20), 999)
    for _ in range(100):
        screen.passed(frame)
    screen._show_last()
    shown = sum("API 999" in line for line in lines)
    assert shown == 64
    assert screen.unshown_count == 36
    assert lines[-1].startswith("... 36 frames are not shown")
