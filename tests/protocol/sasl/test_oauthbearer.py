"""OAUTHBEARER's message: RFC 7628's example, Kafka's extensions, malformed messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.sasl.errors import SaslError
from odradek.protocol.sasl.oauthbearer import OAuthBearerMessage

# RFC 7628, section 4.1, with the GS2 header that Kafka takes.
EXAMPLE = (
    b"n,a=user@example.com,\x01host=server.example.com\x01port=143\x01"
    b"auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\x01\x01"
)


def test_the_example_of_the_rfc() -> None:
    message = OAuthBearerMessage.decode(EXAMPLE)
    assert message.token == "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
    assert message.authorization_id == "user@example.com"
    assert message.extensions == {"host": "server.example.com", "port": "143"}


def test_what_is_encoded_is_decoded() -> None:
    message = OAuthBearerMessage("a.b-c_d", {"traceId": "1 = 2", "logicalCluster": "lkc"}, "bob")
    assert OAuthBearerMessage.decode(message.encode()) == message
    assert "a.b-c_d" not in repr(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01auth=Bearer abc\x01",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a\xc3\xa9\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01x1=2\x01auth=Bearer abc\x01\x01",
        b"n,a=a=b,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01\x01more",
    ],
)
def test_malformed_messages(message: bytes) -> None:
    with pytest.raises(SaslError) as raised:
        OAuthBearerMessage.decode(message)
    assert "abc" not in str(raised.value)


@given(st.binary(max_size=60).map(lambda tail: EXAMPLE[:20] + tail))
def test_any_bytes_are_read_or_refused(message: bytes) -> None:
    try:
        read = OAuthBearerMessage.decode(message)
    except SaslError:
        return
    assert OAuthBearerMessage.decode(read.encode()) == read


@pytest.mark.parametrize(
    "message",
    [
        OAuthBearerMessage("a token"),
        OAuthBearerMessage(""),
        OAuthBearerMessage("a", {"auth": "b"}),
        OAuthBearerMessage("a", {"x1": "b"}),
        OAuthBearerMessage("a", {"x": ""}),
    ],
)
def test_what_cannot_be_sent_is_refused(message: OAuthBearerMessage) -> None:
    with pytest.raises(ValueError, match=r"token consists of|cannot be sent"):
        message.encode()
