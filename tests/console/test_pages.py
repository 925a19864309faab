"""Every page of a console, with what a real broker says; and all that it can change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from support.console import Answer, Console, Page, require_harmless

from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def admin(broker: Any) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as client:
        yield client


@pytest.fixture(scope="module")
def producer(broker: Any) -> Iterator[KafkaProducer]:
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as client:
        yield client


def make_topic(admin: KafkaAdminClient, name: str, partitions: int = 1, **configs: str) -> str:
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(name, partitions, 1, topic_configs=settings)])
    return name


def fill(producer: KafkaProducer, topic: str, count: int, partition: int = 0) -> None:
    for number in range(count):
        value = json.dumps({"number": number, "customer": {"id": number % 5}}).encode()
        producer.send(
            topic,
            value,
            key=b"key-%d" % number,
            headers=[("number", b"%d" % number)],
            partition=partition,
            timestamp_ms=1_600_000_000_000 + number,
        )
    producer.flush()


def offsets_in(page: Page) -> list[tuple[int, int]]:
    """Partition and offset of each row of records."""
    found = []
    for link in page.links():
        match = re.fullmatch(r"/topics/[^/]+/records/(\d+)/(\d+)", link)
        if match:
            found.append((int(match[1]), int(match[2])))
    return found


def link_called(answer: Answer, text: str) -> str | None:
    found = re.search(rf'<a [^>]*href="([^"]+)"[^>]*>{re.escape(text)}</a>', answer.html)
    return None if found is None else found[1].replace("&amp;", "&")


# --- Looking -------------------------------------------------------------------------------------


def test_overview_shows_brokers_and_that_all_is_well(console: Console, broker: Any) -> None:
    page = console.page("/")
    assert broker.bootstrap in page.text
    assert "Every partition has a leader" in page.text


def test_topics_are_searched_and_paged_on_the_server(
    console: Console, admin: KafkaAdminClient, topic: str
) -> None:
    names = [f"{topic}.{number:03}" for number in range(60)]
    admin.create_topics([NewTopic(name, 1, 1) for name in names])
    wait_until(lambda: "60 topics" in console.page(f"/topics?search={topic}").text)
    first = console.page(f"/topics?search={topic.upper()}")
    second = console.page(f"/topics?search={topic}&page=2")
    shown = [
        link.removeprefix("/topics/")
        for page in (first, second)
        for link in page.links()
        if link.startswith(f"/topics/{topic}.")
    ]
    assert shown == names
    assert "1-50 of 60 topics" in first.text.replace("\N{EN DASH}", "-")
    assert "No topic has" in console.page(f"/topics?search={topic}.nothing").text


def test_topic_shows_its_partitions_and_settings_with_their_source(
    console: Console, admin: KafkaAdminClient, producer: KafkaProducer, topic: str
) -> None:
    make_topic(admin, topic, 3, retention_ms="123456")
    fill(producer, topic, 7, partition=1)
    page = console.page(f"/topics/{topic}")
    assert [link for link in page.links() if link.startswith(f"/topics/{topic}/records?")] == [
        f"/topics/{topic}/records?partition={number}" for number in range(3)
    ]
    assert "Offsets in it 7" in page.text
    assert "retention.ms 123456" in page.text
    settings = console.page(f"/topics/{topic}/settings").text
    assert re.search(r"retention\.ms .*123456 .*this topic", settings)
    assert re.search(r"cleanup\.policy .*delete .*default", settings)


def test_broker_shows_what_was_set_and_all_on_demand(console: Console) -> None:
    link = next(each for each in console.page("/").links() if each.startswith("/brokers/"))
    assert "listeners" in console.page(link).text
    everything = console.page(f"{link}?show=all").text
    assert "log.segment.bytes" in everything
    found = console.page(f"{link}?search=segment.BYTES").text
    assert "log.segment.bytes" in found
    assert "num.io.threads" not in found
    assert "/brokers/" in " ".join(console.page("/brokers").links())


def test_storage_shows_where_replicas_lie(
    console: Console, admin: KafkaAdminClient, producer: KafkaProducer, topic: str
) -> None:
    make_topic(admin, topic)
    producer.send(topic, b"x" * 500_000).get(30)
    page = console.page("/storage")
    assert "online" in page.text
    assert f"/topics/{topic}" in page.links()


@pytest.mark.parametrize(
    ("path", "status", "advice"),
    [
        ("/topics/there-is-none", 404, "There is no such topic"),
        ("/topics/a%00b", 404, "No topic can have this name"),
        ("/groups/view?id=there-is-none", 404, "There is no such group"),
        ("/groups/view", 400, "id is missing"),
        ("/transactions/view?id=none", 404, "There is no such transactional id"),
        ("/topics?page=x", 400, "page is a whole number"),
        ("/brokers/4711", 400, "no broker 4711"),
        ("/brokers/x", 400, "whole number"),
        ("/nowhere", 404, "There is no such page"),
        ("/test", 400, "this is no test broker"),
        ("/static/../console.css", 404, ""),
    ],
)
def test_errors_say_what_would_be_right(
    console: Console, path: str, status: int, advice: str
) -> None:
    answer = console.get(path)
    assert answer.status == status
    assert advice in answer.page.text


def test_every_page_runs_nothing_but_the_consoles_own_files(
    console: Console, admin: KafkaAdminClient, producer: KafkaProducer, topic: str
) -> None:
    make_topic(admin, topic)
    fill(producer, topic, 2)
    paths = {"/", *(link for link in console.page("/").links() if link.startswith("/"))}
    paths |= {link for link in console.page(f"/topics/{topic}").links() if link.startswith("/")}
    paths |= {f"/topics/{topic}/records/0/1", "/new-topic", "/login"}
    assert len(paths) > 15
    for path in sorted(paths):
        answer = console.get(path)
        assert answer.status == 200, path
        require_harmless(answer.html)
        page = answer.page
        assert len(page.all("h1")) == 1, path
        assert page.all("html")[0]["lang"] == "en"


def test_first_page_with_all_its_files_is_small(console: Console) -> None:
    from support.console import assets_of

    answer = console.get("/")
    total = len(answer.body) + sum(len(console.get(each).body) for each in assets_of(answer.page))
    assert total < 300_000


# --- Records -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbered(admin: KafkaAdminClient, producer: KafkaProducer) -> str:
    """A topic of two partitions with 130 and 20 records."""
    name = make_topic(admin, "console-numbered", 2)
    fill(producer, name, 130)
    fill(producer, name, 20, partition=1)
    return name


def test_newest_records_are_found_where_most_of_them_lie_in_one_partition(
    console: Console, admin: KafkaAdminClient, producer: KafkaProducer, topic: str
) -> None:
    """Of each partition only a few are read at first."""
    make_topic(admin, topic, 8)
    for number in range(200):
        partition = 3 if number >= 140 else number % 8
        value = b"%d" % number
        producer.send(topic, value, partition=partition, timestamp_ms=1_600_000_000_000 + number)
    producer.flush()
    page = console.page(f"/topics/{topic}/records?limit=50")
    in_3 = 60 + len(range(3, 140, 8))
    assert offsets_in(page) == [(3, offset) for offset in range(in_3 - 1, in_3 - 51, -1)]


@pytest.mark.parametrize(("seek", "further"), [("newest", "Older"), ("oldest", "Newer")])
def test_pages_of_records_have_each_record_once(
    console: Console, numbered: str, seek: str, further: str
) -> None:
    path: str | None = f"/topics/{numbered}/records?seek={seek}"
    seen: list[tuple[int, int]] = []
    while path is not None:
        answer = console.get(path)
        seen += offsets_in(answer.page)
        path = link_called(answer, further)
    assert sorted(seen) == [*((0, each) for each in range(130)), *((1, each) for each in range(20))]
    of_one = [offset for partition, offset in seen if partition == 0]
    assert of_one == sorted(of_one, reverse=seek == "newest")


@pytest.mark.parametrize(
    ("query", "first", "count"),
    [
        ({"partition": 0, "seek": "offset", "offset": 40}, (0, 40), 50),
        ({"partition": 0, "seek": "offset", "offset": 0, "limit": 20}, (0, 0), 20),
        ({"partition": 0, "seek": "offset", "offset": 100_000}, None, 0),
        ({"partition": 0, "seek": "time", "time": 1_600_000_000_090}, (0, 90), 40),
        ({"partition": 0, "seek": "time", "time": "2020-09-13T12:26:40.125Z"}, (0, 125), 5),
        ({"partition": 1, "seek": "newest"}, (1, 19), 20),
        ({"key": "key-77", "partition": 0}, (0, 77), 1),
        ({"text": '"NUMBER": 7,', "seek": "oldest"}, (0, 7), 2),
        ({"header": "number=15", "seek": "oldest"}, (0, 15), 2),
        ({"where": "customer.id = 3", "partition": 1}, (1, 18), 4),
        ({"where": "number >= 128", "partition": 0, "seek": "oldest"}, (0, 128), 2),
    ],
)
def test_records_are_found(
    console: Console,
    numbered: str,
    query: dict[str, object],
    first: tuple[int, int] | None,
    count: int,
) -> None:
    shown = offsets_in(console.page(f"/topics/{numbered}/records?{urlencode(query)}"))
    assert len(shown) == count
    assert (shown[0] if shown else None) == first


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"where": "customer"}, "is no comparison"),
        ({"seek": "time", "time": "noon"}, "a time is written as"),
        ({"partition": 7}, "partition 7 is none of the topic's"),
    ],
)
def test_look_that_cannot_be_says_why(
    console: Console, numbered: str, query: dict[str, object], sentence: str
) -> None:
    assert sentence in console.page(f"/topics/{numbered}/records?{urlencode(query)}").text


def test_record_is_shown_whole_with_its_batch_and_can_be_saved(
    console: Console, numbered: str
) -> None:
    path = f"/topics/{numbered}/records/0/77"
    text = console.page(path).text
    assert '"number": 77' in text
    assert "key-77" in text
    assert re.search(r"Offsets \d+ to \d+, \d+ records", text)
    assert "2020-09-13 12:26:40.077" in text
    saved = console.get(f"{path}/value")
    assert json.loads(saved.body) == {"number": 77, "customer": {"id": 2}}
    assert saved.headers["content-type"] == "application/octet-stream"
    assert saved.headers["content-disposition"].startswith("attachment")
    assert console.get(f"/topics/{numbered}/records/0/130").status == 404
    assert console.get(f"/topics/{numbered}/records/2/0").status == 400
    assert console.get(f"{path}/headers").status == 400
    assert "00000000" in console.page(f"{path}?as=hex").text


def test_record_beside_the_table_is_a_piece_of_a_page(console: Console, numbered: str) -> None:
    answer = console.get(f"/topics/{numbered}/records/0/5", {"HX-Request": "true"})
    assert "<html" not in answer.html
    assert "Partition 0, offset 5" in answer.page.text


def test_aborted_records_and_markers_are_told_from_others(
    console: Console, admin: KafkaAdminClient, broker: Any, topic: str
) -> None:
    make_topic(admin, topic)
    with KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=topic) as client:
        client.init_transactions()
        for value, ends in (
            (b"kept", client.commit_transaction),
            (b"gone", client.abort_transaction),
        ):
            client.begin_transaction()
            client.send(topic, value)
            client.flush()
            ends()
    everything = console.page(f"/topics/{topic}/records?seek=oldest").text
    for word in ("kept", "gone", "COMMIT marker", "ABORT marker"):
        assert word in everything
    committed = console.page(f"/topics/{topic}/records?seek=oldest&committed=1").text
    assert "kept" in committed
    assert "gone" not in committed
    assert "marker" not in committed
    assert "CompleteAbort" in console.page(f"/transactions?search={topic}").text
    shown = console.page(f"/transactions/view?id={topic}").text
    assert "CompleteAbort" in shown
    assert "None: nothing is open" in shown
    assert "Producer id" in console.page(f"/topics/{topic}/producers?partition=0").text
    assert "part of one" in console.page(f"/topics/{topic}/records/0/0").text


def test_new_records_come_as_events(
    console: Console, admin: KafkaAdminClient, producer: KafkaProducer, topic: str
) -> None:
    make_topic(admin, topic, 2)
    producer.send(topic, b"before", partition=0).get(30)
    page = console.page(f"/topics/{topic}/follow")
    address = next(
        each.attributes["sse-connect"] for each in page.elements if "sse-connect" in each.attributes
    )
    events = console.events(address)
    assert events.headers["content-type"].startswith("text/event-stream")
    assert events.readline() == b":\n"  # it has looked where the partitions end
    producer.send(topic, b"<after>", partition=1).get(30)
    seen = b""
    while b"&lt;after&gt;" not in seen:
        line = events.readline()
        assert line
        seen += line
    assert b"before" not in seen
    assert b"event: rows\n" in seen
    events.close()


def test_what_takes_a_while_of_many_partitions_comes_after_its_page(
    console: Console, admin: KafkaAdminClient, topic: str
) -> None:
    make_topic(admin, topic, 1_001)
    try:
        path = f"/transactions/hanging?search={topic}"
        wait_until(lambda: "Looking at 1,001 partitions" in console.page(path).text)
        (later,) = (each["hx-get"] for each in console.page(path).all("div") if "hx-get" in each)
        assert "1,001 partitions were looked at" in console.page(later).text
        assert "The largest replicas" in console.page("/storage?now=1").text
    finally:
        admin.delete_topics([topic])


# --- Changing ------------------------------------------------------------------------------------


def test_topic_is_created_changed_and_deleted_by_its_name(
    console: Console, admin: KafkaAdminClient, topic: str
) -> None:
    fields = {
        "name": topic,
        "partitions": 2,
        "replication": 1,
        "settings": "max.message.bytes=1000\n",
    }
    created = console.post("/topics", fields)
    assert (created.status, created.location) == (303, f"/topics/{topic}")
    assert "Partitions 2" in console.page(created.location).text
    assert f"/topics/{topic}" in console.page(f"/topics?search={topic}").links()

    settings, change = f"/topics/{topic}/settings", {"name": "max.message.bytes", "value": "2000"}
    dry = console.post(settings, {**change, "check": 1})
    require_harmless(dry.html)
    assert "Now 1000 this topic It would be 2000 this topic" in dry.page.text
    assert "max.message.bytes 1000" in console.page(f"/topics/{topic}").text
    wrong = console.post(settings, {**change, "value": "<b>", "check": 1})
    assert (wrong.status, "INVALID_CONFIG" in wrong.page.text) == (409, True)
    console.post(settings, change)
    assert "max.message.bytes 2000" in console.page(f"/topics/{topic}").text
    reset = {"name": "max.message.bytes", "reset": 1}
    default = "Now 2000 this topic It would be 1048588 default"  # Kafka's own
    assert default in console.post(settings, {**reset, "check": 1}).page.text
    console.post(settings, reset)
    assert "follows the brokers' defaults" in console.page(f"/topics/{topic}").text

    refused = console.post(f"/topics/{topic}/delete", {"name": topic[:-1]})
    assert refused.status == 400
    assert topic in admin.list_topics()
    assert console.post(f"/topics/{topic}/delete", {"name": topic}).status == 303
    wait_until(lambda: topic not in admin.list_topics())


@pytest.mark.parametrize(
    ("fields", "status", "sentence"),
    [
        ({"name": "a b"}, 404, "No topic can have this name"),
        ({"name": "x", "partitions": 0}, 400, "between 1 and"),
        ({"name": "x", "settings": "nonsense"}, 400, "NAME=VALUE"),
        ({"name": "x", "settings": "no.such.setting=1"}, 409, "INVALID_CONFIG"),
        ({"name": "x", "replication": 9}, 409, "INVALID_REPLICATION_FACTOR"),
    ],
)
def test_topic_that_cannot_be_is_refused_with_why(
    console: Console, fields: dict[str, object], status: int, sentence: str
) -> None:
    answer = console.post("/topics", fields)
    assert answer.status == status
    assert sentence in answer.page.text


def test_produced_record_is_what_a_consumer_gets(
    console: Console, admin: KafkaAdminClient, broker: Any, topic: str
) -> None:
    make_topic(admin, topic, 3)
    fields: dict[str, object] = {
        "key": "00ff",
        "key_as": "hex",
        "value": 'line <1>\r\nline "2" é',
        "headers": "trace=4711\nempty=",
        "partition": 2,
    }
    written = console.post(f"/topics/{topic}/produce", fields)
    assert (written.status, written.location) == (303, f"/topics/{topic}/records/2/0")
    assert "4711" in console.page(written.location).text
    console.post(f"/topics/{topic}/produce", {"no_key": 1, "tombstone": 1, "partition": 2})
    with KafkaConsumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([TopicPartition(topic, 2)])
        first, second = next(consumer), next(consumer)
    assert (first.key, first.value) == (b"\x00\xff", 'line <1>\nline "2" é'.encode())
    assert list(first.headers) == [("trace", b"4711"), ("empty", b"")]
    assert (second.key, second.value) == (None, None)
    refused = console.post(f"/topics/{topic}/produce", {"value": "0g", "value_as": "hex"})
    assert (refused.status, "is not hexadecimal" in refused.page.text) == (400, True)


def test_records_of_a_file_are_written_if_all_its_lines_are_records(
    console: Console, admin: KafkaAdminClient, broker: Any, topic: str
) -> None:
    make_topic(admin, topic, 2)
    lines = [
        {"key": "k", "value": "caf\N{LATIN SMALL LETTER E WITH ACUTE}\r\n", "partition": 1},
        {"value_base64": "AP8=", "partition": 0, "timestamp": 1_600_000_000_000},
        {"value": None, "partition": 0, "headers": [{"key": "h", "value": "x"}]},
    ]
    content = b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in lines)
    path = f"/topics/{topic}/produce-file"
    for wrong in (content + b"no record\n", content + b'{"partition": 2}', b"\n", b""):
        assert console.upload(path, wrong, {}).status == 400
    assert console.upload(path, content, {"csrf": "wrong"}).status == 400
    assert console.upload(path, b" " * (8 << 20), {}).status == 400
    done = console.upload(path, content, {})
    assert (done.status, done.location) == (303, f"/topics/{topic}/produce?written=3")
    assert "3 records were written" in console.page(done.location).text
    with KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        read = [next(reader) for _ in lines]
    found = sorted(read, key=lambda each: (each.partition, each.offset))
    assert [each.value for each in found] == [b"\x00\xff", None, "caf\u00e9\r\n".encode()]
    assert [each.key for each in found] == [None, None, b"k"]
    assert found[0].timestamp == 1_600_000_000_000
    assert found[1].headers == [("h", b"x")]
    assert console.upload(path, b'{"partition": 2}', {"partitions": "keys"}).status == 303


def test_records_with_a_key_go_where_every_client_sends_them(
    console: Console, admin: KafkaAdminClient, producer: KafkaProducer, topic: str
) -> None:
    make_topic(admin, topic, 7)
    for number in range(5):
        sent = producer.send(topic, b"", key=b"customer-%d" % number).get(30)
        answer = console.post(f"/topics/{topic}/produce", {"key": f"customer-{number}"})
        assert answer.location.startswith(f"/topics/{topic}/records/{sent.partition}/")
        found = console.page(f"/topics/{topic}/records?key=customer-{number}")
        assert {partition for partition, _ in offsets_in(found)} == {sent.partition}
        assert len(offsets_in(found)) == 2


def test_offsets_in_a_topic_that_the_last_snapshot_lacks_are_moved(
    console: Console, admin: KafkaAdminClient, producer: KafkaProducer, broker: Any, topic: str
) -> None:
    console.page("/topics")
    make_topic(admin, topic)
    fill(producer, topic, 3)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=topic) as consumer:
        consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(3, "", -1)})
    shown = console.post("/groups/reset", {"id": topic, "target": "earliest"})
    assert re.search(r"3 0 3 read again", shown.page.text), shown.page.text


def test_offsets_of_a_group_are_moved_after_they_were_shown(
    console: Console, admin: KafkaAdminClient, producer: KafkaProducer, broker: Any, topic: str
) -> None:
    make_topic(admin, topic)
    fill(producer, topic, 10)
    group = f"{topic} & sons"
    with KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        for _ in range(10):
            next(consumer)
        consumer.commit()
        answer = console.get(f"/groups/view?id={quote(group)}")
        require_harmless(answer.html)
        busy = answer.page.text
        assert "Stable" in busy
        assert re.search(rf"Who reads what {topic} Member 0 \S+ reads", busy)
        assert "Stop its consumers first" in busy
        fields = {"id": group, "target": "earliest"}
        assert console.post("/groups/reset", fields).status == 400
    path = f"/groups/view?id={quote(group)}"
    wait_until(lambda: "State Empty" in console.page(path).text)
    assert group in console.page(f"/groups?search={quote(topic)}").text
    lag = f"/groups/lag.json?id={quote(group)}"
    assert json.loads(console.get(lag).body) == {"lag": 0, "lines": [[f"{topic}:0", 0]]}

    fields = {"id": group, "target": "shift", "shift": "-4"}
    shown = console.post("/groups/reset", fields)
    assert shown.status == 200
    assert re.search(r"10 6 4 read again", shown.page.text), shown.page.text
    assert json.loads(console.get(lag).body)["lag"] == 0
    done = console.post("/groups/reset", {**fields, "commit": 1})
    assert done.status == 303
    assert json.loads(console.get(lag).body) == {"lag": 4, "lines": [[f"{topic}:0", 4]]}

    assert console.post("/groups/delete", {"id": group, "name": topic}).status == 400
    assert console.post("/groups/delete", {"id": group, "name": group}).status == 303
    assert console.get(path).status == 404
