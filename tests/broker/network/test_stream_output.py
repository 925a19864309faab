"""What a connection's output becomes on a stream: the same bytes, in few and bounded pieces."""

from random import Random

import pytest

from odradek.broker.network.stream_transport import JOIN_BYTES_MAX, READ_BYTES_MAX, pieces
from odradek.storage.errors import StorageError
from odradek.storage.io.file_slice import FileSlice
from odradek.storage.io.files import REAL_FILES

FILE_BYTES = 3 * READ_BYTES_MAX + 11


@pytest.fixture(scope="module")
def content():
    return Random(1).randbytes(FILE_BYTES)


@pytest.fixture(scope="module")
def file(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("segment") / "0.log"
    path.write_bytes(content)
    return REAL_FILES.open(str(path))


def test_any_output_comes_out_as_it_went_in(file, content):
    rng = Random(2)
    for _ in range(50):
        output, expected = [], b""
        for _ in range(rng.randrange(12)):
            if rng.random() < 0.4:
                start = rng.randrange(FILE_BYTES)
                size = rng.randrange(FILE_BYTES - start)
                output.append(FileSlice(file, start, size))
                expected += content[start : start + size]
            else:
                data = rng.randbytes(rng.choice((0, 1, 40, 5000, JOIN_BYTES_MAX + 1)))
                output.append(rng.choice((bytes, bytearray, memoryview))(data))
                expected += data
        assert b"".join(pieces(output)) == expected


def test_small_buffers_are_sent_together_up_to_a_limit():
    sizes = [len(piece) for piece in pieces([b"x" * 100] * 2000)]
    assert sum(sizes) == 200_000
    assert max(sizes) <= JOIN_BYTES_MAX
    assert len(sizes) == 4


def test_header_goes_with_the_first_records(file, content):
    first, second = pieces([b"head", FileSlice(file, 0, READ_BYTES_MAX + 1)])
    assert first == b"head" + content[:READ_BYTES_MAX]
    assert second == content[READ_BYTES_MAX : READ_BYTES_MAX + 1]


def test_large_slice_is_never_in_memory_as_a_whole(file):
    sizes = [len(piece) for piece in pieces([FileSlice(file, 0, FILE_BYTES)])]
    assert sizes == [READ_BYTES_MAX] * 3 + [11]


def test_slice_longer_than_its_file_is_an_error(file):
    with pytest.raises(StorageError):
        list(pieces([FileSlice(file, FILE_BYTES - 5, 10)]))
