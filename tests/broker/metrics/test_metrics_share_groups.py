"""Metrics of share groups, after a share consumer has done all that it can with records."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType
from confluent_kafka.admin import AdminClient, NewTopic
from support.metrics_page import scrape
from support.share_consumers import (
    QUICK_SHARE_GROUPS,
    SECONDS_MAX,
    hold,
    produce,
    set_group,
    share_member,
    take,
)

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

GROUP, TOPIC = "workers", "events"
SHARE = "kafka_server_sharegroupmetrics_recordacknowledgements_total"
PARTITION = "kafka_server_sharepartitionmetrics_"
COORDINATOR = "kafka_server_group_coordinator_metrics_"
SESSIONS = "kafka_server_sharesessioncache_"


def test_what_members_do_is_counted(tmp_path: Path) -> None:
    arguments = ["--metrics", "127.0.0.1:0"]
    answers = {
        b"accept": AcknowledgeType.ACCEPT,
        b"reject": AcknowledgeType.REJECT,
        b"release": AcknowledgeType.RELEASE,
    }
    with BrokerProcess(
        tmp_path / "data", settings=QUICK_SHARE_GROUPS, arguments=arguments
    ) as broker:
        (url,) = broker.metrics_urls
        before = scrape(url)
        assert before.of(SHARE, ackType="Accept") == before[SESSIONS + "sharesessionscount"] == 0
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        (made,) = admin.create_topics([NewTopic(TOPIC, 1, 1)]).values()
        made.result(SECONDS_MAX)
        set_group(broker.bootstrap, GROUP, record_lock_duration_ms=1000)
        with share_member(broker.bootstrap, TOPIC, GROUP) as member:
            produce(broker.bootstrap, TOPIC, ["accept", "accept", "reject", "release"])
            # What is released comes five times; then it is archived.
            take(member, 8, lambda message: answers[message.value()])
            page = scrape(url)
            counted = {each: page.of(SHARE, ackType=each) for each in ("Accept", "Reject")}
            assert counted == {"Accept": 2, "Reject": 1}
            assert page.of(SHARE, ackType="Release") == 5
            assert page.of(SHARE, ackType="Renew") == 0
            of = {"group": GROUP, "topic": TOPIC, "partition": 0}
            assert page.of(PARTITION + "inflightmessagecount", **of) == 0
            assert page.of(PARTITION + "acquisitionlocktimeout_total", **of) == 0
            assert page.of(COORDINATOR + "group_count", protocol="share") == 1
            assert page.of(COORDINATOR + "share_group_count", state="stable") == 1
            assert page[SESSIONS + "sharesessionscount"] == 1
            assert page[SESSIONS + "sharepartitionscount"] == 1

            produce(broker.bootstrap, TOPIC, ["accept"])
            (held,) = hold(member)
            page = scrape(url)
            assert page.of(PARTITION + "inflightmessagecount", **of) == 1
            assert page.of(PARTITION + "inflightbatchcount", **of) == 1
            wait_until(
                lambda: scrape(url).of(PARTITION + "acquisitionlocktimeout_total", **of) == 1,
                SECONDS_MAX,
            )
            member.acknowledge(held)
        page = scrape(url)
        assert page.of(COORDINATOR + "share_group_count", state="empty") == 1
        assert page[SESSIONS + "sharesessionscount"] == 0
