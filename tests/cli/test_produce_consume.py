"""`odradek produce` and `odradek consume`, each against kafka-python and against each other."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from odradek.cli.common.connection import with_client
from odradek.client.client import KafkaClient
from odradek.testing import Broker, faults

from .conftest import Odradek

pytestmark = pytest.mark.clients


@pytest.fixture
def created(on_broker: Odradek, topic: str) -> str:
    """A topic of two partitions."""
    on_broker("topics", "create", topic, "--partitions", 2, "-c", "retention.ms=-1")
    return topic


def records_of(broker: Any, topic: str, count: int) -> list[Any]:
    with KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as client:
        client.assign([TopicPartition(topic, p) for p in client.partitions_for_topic(topic)])
        records: list[Any] = []
        while len(records) < count:
            batches = client.poll(timeout_ms=60_000)
            assert batches, f"{len(records)} of {count} records"
            records += [record for batch in batches.values() for record in batch]
    return records


def fill(broker: Any, topic: str, count: int, partition: int = 0) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(count):
            producer.send(
                topic,
                key=b"k%d" % number,
                value=b"v%d" % number,
                partition=partition,
                timestamp_ms=1_370_088_000_000 + number * 1000,
                headers=[("n", b"%d" % number)],
            )


def test_lines_become_values(on_broker: Odradek, broker: Any, created: str) -> None:
    outcome = on_broker("produce", created, stdin=b"one\n\ntwo words\nlast without end")
    assert "produced 4 records" in outcome.err
    values = sorted(record.value for record in records_of(broker, created, 4))
    assert values == [b"", b"last without end", b"one", b"two words"]


def test_values_are_bytes_not_text(on_broker: Odradek, broker: Any, created: str) -> None:
    on_broker("produce", created, stdin=b"\xff\x00\xfe\n")
    assert records_of(broker, created, 1)[0].value == b"\xff\x00\xfe"


def test_keys_headers_nulls_and_partition(on_broker: Odradek, broker: Any, created: str) -> None:
    on_broker(
        *("produce", created, "-K", "::", "-H", "a=1", "-H", "b=x=y", "-p", 1),
        *("--null-value", "NULL"),
        stdin=b"k::v::w\nk2::NULL\n",
    )
    first, second = records_of(broker, created, 2)
    assert (first.key, first.value, first.partition) == (b"k", b"v::w", 1)
    assert first.headers == [("a", b"1"), ("b", b"x=y")]
    assert (second.key, second.value) == (b"k2", None)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_goes_through_and_back(
    on_broker: Odradek, created: str, tmp_path: Path, compression: str
) -> None:
    lines = [f"{compression} {number} {'x' * 200}" for number in range(100)]
    file = tmp_path / "lines"
    file.write_text("\n".join(lines) + "\n")
    on_broker("produce", created, "--file", file, "--compression", compression, "-p", 0)
    outcome = on_broker("consume", created, "--from-beginning", "--until-end")
    assert outcome.lines == lines


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_sends(on_broker: Odradek, broker: Any, created: str, acks: str) -> None:
    on_broker("produce", created, "--acks", acks, stdin=b"x\n")
    assert records_of(broker, created, 1)[0].value == b"x"


def test_progress_is_shown_on_standard_error_only(
    on_broker: Odradek, created: str, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"x\n" * 2500)
    outcome = on_broker("produce", created, "--file", file, "--progress")
    assert "2,500 records" in outcome.err
    assert outcome.out == ""


def test_a_separator_may_be_a_tab(on_broker: Odradek, broker: Any, created: str) -> None:
    on_broker("produce", created, "-K", r"\t", stdin=b"a\t1\n")
    (record,) = records_of(broker, created, 1)
    assert (record.key, record.value) == (b"a", b"1")
    outcome = on_broker("produce", created, "-K", r"\t", stdin=b"b 2\n", code=1)
    assert outcome.err.startswith(r"odradek: error: line 1 has no '\t' between")


def test_a_line_without_its_separator_is_named(on_broker: Odradek, created: str) -> None:
    outcome = on_broker("produce", created, "-K", ",", stdin=b"a,1\nb 2\n", code=1)
    assert outcome.err.startswith("odradek: error: line 2 has no ','")


def test_produce_names_a_wrong_partition_and_compression(on_broker: Odradek, created: str) -> None:
    outcome = on_broker("produce", created, "-p", 2, stdin=b"x\n", code=1)
    assert f"topic {created} has no partition 2; it has 2, from 0" in outcome.err
    outcome = on_broker("produce", created, "-z", "rar", stdin=b"x\n", code=1)
    assert "use one of none, gzip, snappy, lz4, zstd" in outcome.err


def test_a_missing_file_is_one_sentence(on_broker: Odradek, created: str, tmp_path: Path) -> None:
    missing = tmp_path / "nothing"
    outcome = on_broker("produce", created, "--file", missing, code=1)
    assert outcome.err == f"odradek: error: {missing}: No such file or directory\n"


def test_a_record_too_large_is_refused_in_one_line(on_broker: Odradek, created: str) -> None:
    outcome = on_broker("produce", created, stdin=b"x" * 2_000_000, code=1)
    assert outcome.err.startswith("odradek: error: partition ")
    assert "max.message.bytes" in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_lines_above_a_megabyte_go_through_where_the_topic_takes_them(
    on_broker: Odradek, topic: str, tmp_path: Path
) -> None:
    on_broker("topics", "create", topic, "-c", "max.message.bytes=8000000")
    lines = ["x" * 3_000_000, "small", "y" * 1_500_000]
    file = tmp_path / "lines"
    file.write_text("\n".join(lines) + "\n")
    on_broker("produce", topic, "--file", file)
    assert on_broker("consume", topic, "--from-beginning", "-e").lines == lines


def test_what_comes_before_a_wrong_line_is_sent(
    on_broker: Odradek, broker: Any, created: str
) -> None:
    on_broker("produce", created, "-K", ",", stdin=b"a,1\nb 2\n", code=1)
    assert records_of(broker, created, 1)[0].value == b"1"


def test_json_lines_hold_the_whole_record(on_broker: Odradek, broker: Any, created: str) -> None:
    fill(broker, created, 1)
    (line,) = on_broker("consume", created, "--from-beginning", "-e", "--format", "json").lines
    assert json.loads(line) == {
        "topic": created,
        "partition": 0,
        "offset": 0,
        "timestamp": 1_370_088_000_000,
        "key": "k0",
        "value": "v0",
        "headers": [{"key": "n", "value": "0"}],
    }


def test_json_lines_copy_a_topic(on_broker: Odradek, broker: Any, created: str) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(
            created, key=b"\xff", value=None, partition=1, timestamp_ms=5, headers=[("h", b"\xfe")]
        )
        producer.send(created, key=None, value="naïve".encode(), partition=0, timestamp_ms=6)
    copy = f"{created}-copy"
    on_broker("topics", "create", copy, "-p", 2, "-c", "retention.ms=-1")
    lines = on_broker("consume", created, "--from-beginning", "-e", "--format", "json").out
    on_broker("produce", copy, "--format", "json", stdin=lines.encode())

    def content(name: str) -> list[Any]:
        records = records_of(broker, name, 2)
        return sorted((r.partition, r.timestamp, r.key, r.value, r.headers) for r in records)

    assert content(copy) == content(created)


def test_a_copy_into_fewer_partitions_says_how(
    on_broker: Odradek, broker: Any, created: str
) -> None:
    fill(broker, created, 3, partition=1)
    one = f"{created}-one"
    on_broker("topics", "create", one, "-p", 1)
    lines = on_broker("consume", created, "--from-beginning", "-e", "--format", "json").out.encode()
    outcome = on_broker("produce", one, "--format", "json", stdin=lines, code=1)
    assert outcome.err.startswith("odradek: error: line 1 is for partition 1, and the topic has 1")
    on_broker("produce", one, "--format", "json", "--repartition", stdin=lines)
    assert on_broker("consume", one, "--from-beginning", "-e").lines == ["v0", "v1", "v2"]


WRONG_FIELDS = [
    *('"partition": "zero"', '"partition": true', '"partition": -1', '"timestamp": 1e300'),
    *('"timestamp": 99999999999999999999', '"timestamp": "now"', '"value_base64": "!"'),
    *('"headers": [{"key": "\\ud800"}]', '"headers": {"a": "b"}', '"value": ' + "[" * 100_000),
]


@pytest.mark.parametrize("field", WRONG_FIELDS, ids=lambda field: field[:40])
def test_json_with_a_field_that_is_none_is_named(
    on_broker: Odradek, created: str, field: str
) -> None:
    line = b"{%s}\n" % field.encode()
    outcome = on_broker("produce", created, "--format", "json", stdin=line, code=1)
    assert outcome.err.startswith("odradek: error: line 1 is no record in JSON (")
    assert len(outcome.err.splitlines()) == 1


def test_lines_of_windows_end_with_both_characters(
    on_broker: Odradek, broker: Any, created: str
) -> None:
    lines = [b"a", b"b\r\r", b"", b"x" * 256 * 1024, b"c\rd"]
    on_broker("produce", created, "-p", 0, stdin=b"".join(line + b"\r\n" for line in lines) + b"e")
    assert [record.value for record in records_of(broker, created, 6)] == [*lines, b"e"]


def test_a_refused_write_is_reported_while_it_is_refused(kafka: Any, kafka_topic: str) -> None:
    command = [sys.executable, "-m", "odradek", "produce", kafka_topic]
    command += ["-b", kafka.bootstrap_servers]
    refused = faults.answer("Produce", "NOT_ENOUGH_REPLICAS", topic=kafka_topic)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stderr is not None
        with kafka.faults.during(refused):
            child.stdin.write("line\n")
            child.stdin.flush()
            reported = child.stderr.readline()
        assert reported.startswith("1 records wait, the first for ")
        assert f"topic '{kafka_topic}': NOT_ENOUGH_REPLICAS" in reported
        child.stdin.close()
        assert "produced 1 records" in child.stderr.read()


def test_a_refused_write_is_one_line_of_the_brokers_log(odradek: Odradek, patience: None) -> None:
    with Broker({"message.max.bytes": "1000"}) as broker:
        server = ("-b", broker.bootstrap_servers)
        assert odradek("produce", "t", *server, stdin=bytes(2000) + b"\n").code == 1
        broker.stop()
        warnings = [line for line in broker.log.splitlines() if " WARNING " in line]
    assert len(warnings) == 1, warnings
    assert "a write to t-0" in warnings[0]
    assert "MESSAGE_TOO_LARGE: a batch of " in warnings[0]


def test_a_lost_write_ends_the_command_though_more_could_be_read(
    on_broker: Odradek, topic: str
) -> None:
    on_broker("topics", "create", topic, "-c", "max.message.bytes=100")
    with subprocess.Popen(
        [sys.executable, "-m", "odradek", "produce", topic],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdin is not None
        assert child.stderr is not None
        child.stdin.write("x" * 1000 + "\n")
        child.stdin.flush()
        assert "max.message.bytes" in child.stderr.readline()
        assert child.wait(60) == 1


def test_a_reader_that_has_gone_is_not_waited_for(
    on_broker: Odradek, broker: Any, created: str
) -> None:
    """No further record comes, and so no write that could fail."""
    fill(broker, created, 2)
    answer = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m odradek consume {created} --from-beginning | head -1"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (answer.stdout, answer.stderr) == ("v0\n", "")


def test_ctrl_c_ends_reading_and_writing_without_a_word(on_broker: Odradek, created: str) -> None:
    on_broker("produce", created, stdin=b"x\n")
    for arguments in (("consume", created, "--from-beginning"), ("produce", created, "-H", "a=b")):
        with subprocess.Popen(
            [sys.executable, "-m", "odradek", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as child:  # fmt: skip
            if arguments[0] == "consume":
                assert child.stdout is not None
                assert child.stdout.readline() == b"x\n"
            else:
                assert child.stdin is not None
                child.stdin.write(b"y\n")
                child.stdin.flush()
                while on_broker("consume", created, "--from-beginning", "-e").out.count("\n") < 2:
                    pass
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
            assert (child.returncode, out, err) == (130, b"", b"")


def test_ctrl_c_does_not_come_in_the_middle_of_what_a_client_does(
    broker: Any, request: pytest.FixtureRequest
) -> None:
    """It ended a task of trio's own between two lines, or lost what gives a semaphore back."""
    # As in a command's process: PySpark leaves a handler of its own behind where it has run before.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    ended = []

    async def in_the_middle() -> None:
        signal.raise_signal(signal.SIGINT)
        ended.append("a step")

    async def work(client: KafkaClient) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_the_middle)
            await trio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as interrupted:
        with_client(broker.bootstrap, work)
    assert interrupted.value.split(KeyboardInterrupt)[1] is None
    assert ended == ["a step"]


def test_json_that_is_no_record_is_named(on_broker: Odradek, created: str) -> None:
    outcome = on_broker("produce", created, "--format", "json", stdin=b'{"value": 1}\n[]\n', code=1)
    assert outcome.err.startswith("odradek: error: line 2 is no record in JSON")


def test_columns_beside_the_value(on_broker: Odradek, broker: Any, created: str) -> None:
    fill(broker, created, 2)
    outcome = on_broker(
        *("consume", created, "--from-beginning", "-e"),
        *("--partitions", "--timestamps", "--headers", "--keys"),
    )
    assert outcome.lines == [
        "0:0\t2013-06-01T12:00:00.000Z\tn=0\tk0\tv0",
        "0:1\t2013-06-01T12:00:01.000Z\tn=1\tk1\tv1",
    ]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (["--from-beginning"], range(10)),
        (["--offset", "4"], range(4, 10)),
        (["--offset", "-3"], range(7, 10)),
        (["--offset", "99"], range(0)),
        (["--from-time", "2013-06-01T12:00:06Z"], range(6, 10)),
        (["--from-time", "1370088007500"], range(8, 10)),
        (["--from-time", "2030-01-01"], range(0)),
        (["--from-beginning", "-n", "3"], range(3)),
        ([], range(0)),
    ],
    ids=lambda parameter: " ".join(parameter) if isinstance(parameter, list) else "",
)
def test_reading_starts_and_stops_where_requested(
    on_broker: Odradek, broker: Any, created: str, start: list[str], expected: range
) -> None:
    fill(broker, created, 10)
    outcome = on_broker("consume", created, "-p", 0, "--until-end", *start)
    assert outcome.lines == [f"v{number}" for number in expected]


def test_only_the_partition_requested(on_broker: Odradek, broker: Any, created: str) -> None:
    fill(broker, created, 2, partition=0)
    fill(broker, created, 3, partition=1)
    assert len(on_broker("consume", created, "--from-beginning", "-e", "-p", 1).lines) == 3
    assert len(on_broker("consume", created, "--from-beginning", "-e").lines) == 5
    outcome = on_broker("consume", created, "-p", 5, code=1)
    assert f"topic {created} has no partition 5" in outcome.err


def test_without_records_it_stops_after_the_timeout(on_broker: Odradek, created: str) -> None:
    assert on_broker("consume", created, "--timeout", 0.2).out == ""


def test_consume_of_a_missing_topic_creates_none(on_broker: Odradek, topic: str) -> None:
    outcome = on_broker("consume", topic, "-e", code=1)
    assert "there is no such topic; see: odradek topics list" in outcome.err
    assert topic not in on_broker("topics", "list").out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--from-beginning", "--offset", "1"), "give one of them"),
        (("--group", "g", "--offset", "1"), "odradek groups reset-offsets g --topic"),
        (("--group", "g", "--partition", "1"), "leave out --partition or --group"),
        (("--from-time", "yesterday"), "'yesterday' is no time"),
    ],
)
def test_options_that_do_not_go_together_are_reported(
    on_broker: Odradek, created: str, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in on_broker("consume", created, *arguments, code=1).err


def test_a_record_above_a_megabyte_is_shown(on_broker: Odradek, broker: Any, topic: str) -> None:
    on_broker("topics", "create", topic, "-c", "max.message.bytes=4000000")
    value = b"x" * 3_000_000
    with KafkaProducer(bootstrap_servers=broker.bootstrap, max_request_size=4_000_000) as producer:
        producer.send(topic, value)
    outcome = on_broker("consume", topic, "--from-beginning", "-e")
    assert outcome.lines == [value.decode()]


def test_null_values_and_values_of_many_bytes_keep_their_lines(
    on_broker: Odradek, broker: Any, created: str
) -> None:
    values = [b"a", None, b"", b"y" * 200, b"z" * 20_000, b"last"]
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for value in values:
            producer.send(created, key=b"k" * 300, value=value, partition=0)
    outcome = on_broker("consume", created, "--from-beginning", "-e")
    assert outcome.lines == ["null" if value is None else value.decode() for value in values]


def test_a_group_goes_on_behind_what_it_was_shown(
    on_broker: Odradek, broker: Any, created: str
) -> None:
    fill(broker, created, 10)
    group = ("consume", created, "--group", f"g-{created}", "--from-beginning")
    assert on_broker(*group, "-n", 3).lines == ["v0", "v1", "v2"]
    assert on_broker(*group, "-n", 4).lines == ["v3", "v4", "v5", "v6"]
    assert on_broker(*group, "--until-end").lines == ["v7", "v8", "v9"]
    assert on_broker(*group, "--until-end").lines == []
