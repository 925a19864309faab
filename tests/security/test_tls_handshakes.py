"""TLS listeners against clients that do it right, wrong, slowly, or not at all."""

import ssl
from datetime import UTC, datetime
from random import Random

import pytest
import trio
from support.tls_server import HELLO, tls_server

from odradek.broker.network import tls_listener as handshakes
from odradek.testing.certificates import CertificateAuthority, make_tls_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_tls_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """Another one than that of `files`."""
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


def trusting(files, authority):
    """The files of a broker that trusts this authority's clients, and its own's."""
    both = authority.path + ".both"
    with open(both, "w") as target:
        for path in (files.ca, authority.path):
            with open(path) as source:
                target.write(source.read())
    return {"ssl__truststore__location": both}


async def read_until_closed(stream):
    received = b""
    while True:
        try:
            part = await stream.receive_some()
        except trio.BrokenResourceError:
            return received
        if not part:
            return received
        received += part


async def reason_of_refusal(server, context):
    """Why the broker refuses a client, as its alert says."""
    with pytest.raises(trio.BrokenResourceError) as refused:
        await server.ask(context)
    cause = refused.value.__cause__
    assert isinstance(cause, ssl.SSLError), cause
    return cause.reason


async def test_client_is_anonymous_without_a_certificate(files):
    async with tls_server(files) as server:
        assert await server.ask(server.client()) == "User:ANONYMOUS says hello"


async def test_principal_is_the_name_in_the_certificate(files, authority):
    shown = authority.issue("c", common_name="billing", organization="Odd, Inc.")
    settings = trusting(files, authority)
    async with tls_server(files, ssl__client__auth="required", **settings) as server:
        answer = await server.ask(server.client(shown))
        assert answer == "User:CN=billing,OU=tests,O=Odd\\, Inc. says hello"


async def test_principal_is_what_rules_make_of_the_name(files, authority):
    shown = authority.issue("c", common_name="Billing", organization="odradek")
    settings = trusting(files, authority)
    settings["ssl__principal__mapping__rules"] = "RULE:^CN=([^,]*),.*$/$1@odradek/L, DEFAULT"
    async with tls_server(files, ssl__client__auth="required", **settings) as server:
        assert await server.ask(server.client(shown)) == "User:billing@odradek says hello"


async def test_client_whose_name_no_rule_is_for_is_refused(files, authority, caplog):
    shown = authority.issue("c", common_name="stranger")
    settings = trusting(files, authority)
    settings["ssl__principal__mapping__rules"] = "RULE:^CN=friend,.*$/friend/"
    async with tls_server(files, ssl__client__auth="required", **settings) as server:
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await server.ask(server.client(shown))
    assert "no rule of ssl.principal.mapping.rules" in caplog.text


async def test_requested_certificate_may_be_left_out(files, authority):
    shown = authority.issue("c", common_name="billing")
    settings = trusting(files, authority)
    async with tls_server(files, ssl__client__auth="requested", **settings) as server:
        assert await server.ask(server.client()) == "User:ANONYMOUS says hello"
        assert "CN=billing" in await server.ask(server.client(shown))


async def test_certificate_is_not_looked_at_where_none_is_asked_for(files, authority):
    shown = authority.issue("c", common_name="billing")
    async with tls_server(files) as server:
        assert await server.ask(server.client(shown)) == "User:ANONYMOUS says hello"


async def test_missing_certificate_is_told_by_an_alert(files, caplog):
    async with tls_server(files, ssl__client__auth="required") as server:
        reason = await reason_of_refusal(server, server.client())
    assert reason == "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    assert "it shows no certificate" in caplog.text


async def test_certificate_of_another_authority_is_told_by_an_alert(files, authority, caplog):
    shown = authority.issue("c", common_name="billing")
    async with tls_server(files, ssl__client__auth="requested") as server:
        reason = await reason_of_refusal(server, server.client(shown))
    assert reason == "TLSV1_ALERT_UNKNOWN_CA"
    assert "its certificate is not accepted" in caplog.text


async def test_expired_certificate_is_told_by_an_alert(files, authority, caplog):
    shown = authority.issue("c", not_after=datetime(2020, 1, 1, tzinfo=UTC))
    settings = trusting(files, authority)
    async with tls_server(files, ssl__client__auth="required", **settings) as server:
        reason = await reason_of_refusal(server, server.client(shown))
    assert reason == "SSLV3_ALERT_CERTIFICATE_EXPIRED"
    assert "certificate has expired" in caplog.text


async def test_client_that_does_not_trust_the_broker_ends_the_handshake(files, authority):
    async with tls_server(files) as server:
        context = ssl.create_default_context(cafile=authority.path)
        with pytest.raises(trio.BrokenResourceError) as refused:
            await server.ask(context)
        assert isinstance(refused.value.__cause__, ssl.SSLCertVerificationError)
        assert await server.ask(server.client())


async def test_version_that_is_not_enabled_is_refused(files):
    async with tls_server(files, ssl__enabled__protocols="TLSv1.3") as server:
        old = server.client()
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        assert await reason_of_refusal(server, old) == "TLSV1_ALERT_PROTOCOL_VERSION"
        assert await server.ask(server.client())
    async with tls_server(files, ssl__enabled__protocols="TLSv1.2") as server:
        new = server.client()
        new.minimum_version = ssl.TLSVersion.TLSv1_3
        assert await reason_of_refusal(server, new) == "TLSV1_ALERT_PROTOCOL_VERSION"
        assert await server.ask(server.client())


async def test_only_the_suites_named_are_spoken(files):
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    async with tls_server(files, ssl__cipher__suites=suite) as server:
        other = server.client()
        other.maximum_version = ssl.TLSVersion.TLSv1_2
        other.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
        assert await reason_of_refusal(server, other) == "SSLV3_ALERT_HANDSHAKE_FAILURE"
        assert await server.ask(server.client())


async def test_plain_bytes_end_the_connection_and_say_so_in_the_log(files, caplog):
    async with tls_server(files) as server:
        stream = await server.connect()
        await stream.send_all(b"\0\0\0\x17\0\x12\0\3\0\0\0\1\0\4test\0\3kp\3" + HELLO)
        await read_until_closed(stream)
        assert await server.ask(server.client())
    assert "it does not speak TLS" in caplog.text


async def test_nonsense_in_place_of_or_within_a_handshake_only_ends_its_connection(files):
    rng = Random(5)
    opening = hello_of_a_client(files)
    async with tls_server(files) as server:
        for _ in range(40):
            stream = await server.connect()
            data = bytearray(opening) if rng.random() < 0.7 else bytearray(rng.randbytes(200))
            for _ in range(rng.randrange(1, 9)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            await stream.send_all(data[: rng.randrange(1, len(data) + 1)])
            await stream.send_eof()
            await read_until_closed(stream)
            await stream.aclose()
        assert await server.ask(server.client())


def hello_of_a_client(files):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context(cafile=files.ca).wrap_bio(
        incoming, outgoing, server_hostname="127.0.0.1"
    )
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


async def test_handshake_that_stalls_is_ended(files, caplog):
    async with tls_server(files, connections__max__idle__ms="3000") as server:
        silent = await server.connect()
        begun = await server.connect()
        await begun.send_all(hello_of_a_client(files)[:20])
        assert await server.ask(server.client())  # nobody else waits for them
        assert await read_until_closed(silent) == b""
        assert await read_until_closed(begun) == b""
    assert caplog.text.count("it did not come to its end in time") == 2


async def test_oldest_handshake_makes_room_for_a_new_one(files, monkeypatch):
    monkeypatch.setattr(handshakes, "HANDSHAKES_MAX", 3)
    async with tls_server(files) as server:
        stalled = [await server.connect() for _ in range(3)]
        for stream in stalled:
            await stream.send_all(hello_of_a_client(files)[:20])
        assert await server.ask(server.client())
        assert await read_until_closed(stalled[0]) == b""
        for stream in stalled[1:]:
            with trio.move_on_after(0.05) as scope:
                await stream.receive_some()
            assert scope.cancelled_caught


async def test_client_that_sends_much_and_reads_nothing_holds_up_nobody(files):
    async with tls_server(files) as server:
        stream = trio.SSLStream(
            await server.connect(), server.client(), server_hostname="127.0.0.1"
        )
        with trio.move_on_after(0.5) as sending:
            while True:
                await stream.send_all(HELLO * 1000)
        assert sending.cancelled_caught
        assert await server.ask(server.client())
        await trio.aclose_forcefully(stream)


async def test_many_requests_in_one_sending_are_all_answered_in_order(files):
    async with tls_server(files) as server:
        stream = trio.SSLStream(
            await server.connect(), server.client(), server_hostname="127.0.0.1"
        )
        numbered = [f"{number:05}" for number in range(20_000)]
        data = b"".join(b"\0\0\0\5" + each.encode() for each in numbered)
        answers = [f"User:ANONYMOUS says {each}".encode() for each in numbered]
        expected = b"".join(len(each).to_bytes(4, "big") + each for each in answers)
        received = bytearray()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, data)
            while len(received) < len(expected):
                received += await stream.receive_some()
        assert received == expected
        await trio.aclose_forcefully(stream)


async def test_connections_are_counted_while_they_last(files):
    async with tls_server(files) as server:
        assert server.server.connection_counts() == {"SSL": (0, 0)}
        await server.ask(server.client())
        with trio.fail_after(60):
            while server.server.connection_counts() != {"SSL": (0, 1)}:
                await trio.lowlevel.checkpoint()


async def shaken_hands(server):
    """A client whose handshake is over, and which was answered."""
    stream = trio.SSLStream(
        await server.connect(), server.client(), server_hostname="127.0.0.1", https_compatible=True
    )
    await stream.send_all(HELLO)
    assert await stream.receive_some()
    return stream


async def test_an_address_has_no_more_tls_connections_than_it_may(files):
    async with tls_server(files, max__connections__per__ip="1") as server:
        first = await shaken_hands(server)
        second = await server.connect()
        assert await read_until_closed(second) == b""
        await trio.aclose_forcefully(first)
        while len(server.server.quotas):  # its end is noticed
            await trio.lowlevel.checkpoint()
        assert await server.ask(server.client()) == "User:ANONYMOUS says hello"


async def test_a_tls_connection_makes_way_at_the_bound_of_descriptors(files):
    async with tls_server(files) as server:
        server.server.quotas._connections_max = 2
        used = await shaken_hands(server)
        unused = await server.connect()
        await shaken_hands(server)
        assert await read_until_closed(unused) == b""
        await used.send_all(HELLO)
        assert await used.receive_some()


async def test_tls_connections_wait_at_the_maximum_until_one_ends(files):
    async with tls_server(files, max__connections="1") as server, trio.open_nursery() as nursery:
        first = await shaken_hands(server)
        answers = []

        async def ask():
            answers.append(await server.ask(server.client()))

        nursery.start_soon(ask)
        await first.send_all(HELLO)
        assert await first.receive_some()
        assert not answers
        assert len(server.server.quotas) == 1
        await trio.aclose_forcefully(first)
    assert answers == ["User:ANONYMOUS says hello"]
