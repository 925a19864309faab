"""Logins that are refused though they are right, that expire, and that take long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from odradek.client import AuthenticationError, KafkaClient
from odradek.client.admin.admin import Admin
from odradek.client.errors import ClientError, DisconnectedError
from odradek.client.settings import ClientSettings
from odradek.protocol import messages
from odradek.testing import Broker, faults
from odradek.testing.client_settings import User

WAIT_MS = 60_000


@pytest.fixture(scope="module", params=["SCRAM-SHA-256", "PLAIN"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(sasl=request.param) as broker:
        yield broker


def log_in(broker: Broker, user: User, settings: ClientSettings | None = None) -> None:
    async def connect() -> None:
        reached = broker.client_settings("odradek", user=user)
        async with KafkaClient(settings=settings or ClientSettings(), **reached) as client:
            await client.refresh_metadata(WAIT_MS)

    trio.run(connect)


def test_a_right_login_is_refused_as_a_wrong_one_is(broker: Broker) -> None:
    alice, bob = broker.add_user("alice"), broker.add_user("bob")
    with pytest.raises(AuthenticationError) as wrong:
        log_in(broker, alice._replace(password="wrong"))
    with broker.faults.during(faults.refuse_login(user="alice").once()) as fault:
        log_in(broker, bob)
        assert fault.strikes == 0
        with pytest.raises(AuthenticationError) as refused:
            log_in(broker, alice)
        assert fault.strikes == 1
        log_in(broker, alice)
    assert str(refused.value) == str(wrong.value)
    assert "the login of User:alice is refused" in broker.log


def test_a_login_expires_with_the_users_next_request(broker: Broker) -> None:
    alice = broker.add_user("alice")

    async def meet_it() -> None:
        async with KafkaClient(**broker.client_settings("odradek", user=alice)) as client:
            await client.refresh_metadata(WAIT_MS)
            expired = faults.expire_session("DescribeCluster", user="User:alice").once()
            added = broker.faults.add(expired)
            async with KafkaClient(**broker.client_settings("odradek")) as admin:
                await Admin(admin).describe_cluster()  # another user's is not struck
            assert added.strikes == 0
            with pytest.raises(DisconnectedError):
                await client.send_to_any(messages.DescribeClusterRequest())
            assert added.strikes == 1
            await client.refresh_metadata(WAIT_MS)  # it has logged in anew

    trio.run(meet_it)
    assert "the login of User:alice has expired" in broker.log


@pytest.mark.parametrize("api", ["SaslHandshake", "SaslAuthenticate"])
def test_a_slow_handshake_takes_as_long_as_it_says(broker: Broker, api: str) -> None:
    alice = broker.add_user("alice")
    with broker.faults.during(faults.delay(api, seconds=0.05).once()) as slow:
        log_in(broker, alice)
        assert slow.strikes == 1


def test_a_fault_may_be_about_any_request_of_a_user(broker: Broker) -> None:
    alice, bob = broker.add_user("alice"), broker.add_user("bob")
    with broker.faults.during(faults.drop("Metadata", user="bob")) as dropped:
        log_in(broker, alice)
        impatient = ClientSettings(request_timeout_ms=300, max_block_ms=600)

        async def connect() -> None:
            reached = broker.client_settings("odradek", user=bob)
            async with KafkaClient(settings=impatient, **reached) as client:
                await client.refresh_metadata(600)

        with pytest.raises(ClientError):
            trio.run(connect)
        assert dropped.strikes >= 1
