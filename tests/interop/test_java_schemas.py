"""Our frames through the classes that Kafka generates from its own definitions of messages.

They read each frame, refuse what their definition does not allow, and must write the same
bytes. Kafka 4.3.1's are the reference; what 4.0 has dropped goes through those of 3.9.1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from support.random_messages import random_value

from odradek.protocol import ApiKey, internal, messages
from odradek.protocol.codec.message import MessageType
from odradek.protocol.headers import request_header, response_header

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

PROJECT = Path(__file__).parent / "java_schemas"
CURRENT, OLD = "4.3.1", "3.9.1"
SEEDS = 20
SIDES = {"request": messages.request_message, "response": messages.response_message}

Java = Callable[..., list[str]]
Ranges = dict[int, range]


@pytest.fixture(scope="module")
def java() -> Java:
    """Run `ReadAndWrite` on the classes of a release; gives the lines that it prints."""
    runtime, maven = shutil.which("java"), shutil.which("mvn")
    assert runtime is not None, "install a JDK of 17 or later"
    assert maven is not None, "install Maven"
    subprocess.run((maven, "-q", "-B", "prepare-package"), cwd=PROJECT, check=True)
    target = PROJECT / "target"

    def run(release: str, *arguments: str, lines: list[str] | None = None) -> list[str]:
        classes = os.pathsep.join((str(target / "classes"), f"{target / f'kafka-{release}'}/*"))
        flags = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classes)
        command = (runtime, *flags, "odradek.schemas.ReadAndWrite", *arguments)
        text = "".join(f"{line}\n" for line in lines or ())
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return run


def ranges_of(java: Java, release: str) -> Ranges:
    """The versions that a release has of each API."""
    rows = [map(int, line.split()) for line in java(release, "versions")]
    return {key: range(first, last + 1) for key, first, last in rows}


def frames(side: str, key: ApiKey, versions: range) -> list[tuple[int, bytes]]:
    """Frames of some versions of an API, and the version of each."""
    message = SIDES[side](key)
    made = []
    for version in versions:
        for seed in range(SEEDS):
            value = random_value(message.version(version), Random(f"{side} {key} {version} {seed}"))
            if side == "request":
                header = request_header(key, version, seed, None if seed == 0 else "größe")
            else:
                header = response_header(key, version, seed)
            made.append((version, header + b"".join(message.encoder(version)(value))))
    return made


def kept_by(release_ranges: Ranges, key: ApiKey, message: MessageType) -> range:
    """The versions of a message that a release has."""
    theirs = release_ranges.get(key, range(0))
    first, stop = max(theirs.start, message.versions.start), min(theirs.stop, message.versions.stop)
    return range(first, max(first, stop))


def require_same_bytes(java: Java, release: str, requested: list[tuple[str, bytes]]) -> None:
    """Have Java read and write each message; `asked` has what `ReadAndWrite` takes."""
    answers = java(release, lines=[f"{what} {content.hex()}" for what, content in requested])
    assert len(answers) == len(requested)
    different = [
        f"{what}: {answer[:300]} instead of {content.hex()[:300]}"
        for (what, content), answer in zip(requested, answers, strict=True)
        if answer != content.hex()
    ]
    assert not different, f"{len(different)} of {len(requested)}:\n" + "\n".join(different[:10])


@pytest.mark.parametrize("release", [CURRENT, OLD])
@pytest.mark.parametrize("side", SIDES)
def test_kafkas_classes_read_our_frames_and_write_the_same_bytes(
    java: Java, side: str, release: str
) -> None:
    ranges = ranges_of(java, release)
    newer = ranges_of(java, CURRENT) if release == OLD else {}
    requested = [
        (f"{side} {key:d} {version}", frame)
        for key in ApiKey
        for version, frame in frames(side, key, kept_by(ranges, key, SIDES[side](key)))
        if version not in newer.get(key, ())
    ]
    assert requested
    require_same_bytes(java, release, requested)


INTERNAL = [internal.find_message(name) for name in internal.message_names()]

OLD_HEADER = "RequestHeader"
"""Version 0 of it is 3.9.1's, of ControlledShutdown v0."""


def test_kafkas_classes_read_what_internal_topics_hold_and_write_the_same_bytes(java: Java) -> None:
    requested: dict[str, list[tuple[str, bytes]]] = {CURRENT: [], OLD: []}
    for message in INTERNAL:
        for version in message.versions:
            release = OLD if message.name == OLD_HEADER and version == 0 else CURRENT
            for seed in range(SEEDS):
                rng = Random(f"{message.name} {version} {seed}")
                value = random_value(message.version(version), rng)
                content = b"".join(message.encoder(version)(value))
                requested[release].append((f"{message.name} {version}", content))
    for release, contents in requested.items():
        require_same_bytes(java, release, contents)


def test_internal_schemas_have_kafkas_versions(java: Java) -> None:
    names = [message.name for message in INTERNAL]
    theirs = {row.split()[0]: row.split()[1:] for row in java(CURRENT, "versions", *names)}
    for message in INTERNAL:
        first, last = map(int, theirs[message.name])
        first = 0 if message.name == OLD_HEADER else first
        assert message.versions == range(first, last + 1), message.name


def test_every_version_of_ours_is_one_of_kafkas(java: Java) -> None:
    current, old = ranges_of(java, CURRENT), ranges_of(java, OLD)
    ours = {(key, version) for key in ApiKey for version in messages.request_message(key).versions}
    theirs = {
        (ApiKey(key), version)
        for ranges in (current, old)
        for key, versions in ranges.items()
        for version in versions
    }
    assert ours <= theirs
    assert {(key, version) for key, version in theirs if version in current.get(key, ())} <= ours
