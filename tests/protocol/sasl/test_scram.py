"""SCRAM's messages and keys: RFC 7677's example, Kafka's format, malformed messages."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.sasl.errors import SaslError
from odradek.protocol.sasl.scram import (
    SCRAM_MECHANISMS,
    SHA_256,
    ClientFinal,
    ClientFirst,
    ScramCredential,
    ScramExchange,
    ServerFinal,
    ServerFirst,
    client_first_bare,
)

# The example of RFC 7677, section 3: user "user", password "pencil".
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
FINAL = f"c=biws,r={NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def exchange_of_the_rfc() -> ScramExchange:
    final = ClientFinal.decode(FINAL)
    return ScramExchange(SHA_256, client_first_bare(FIRST), SERVER_FIRST, final.without_proof)


def test_the_example_of_the_rfc_from_both_sides() -> None:
    first = ServerFirst.decode(SERVER_FIRST)
    assert (first.nonce, first.iterations) == (NONCE, 4096)
    credential = SHA_256.credential("pencil", first.salt, first.iterations)
    exchange = exchange_of_the_rfc()
    final = ClientFinal.decode(FINAL)
    assert final.channel == ClientFirst.decode(FIRST).header.encode()
    assert exchange.is_proven(credential, final.proof)
    signature = exchange.server_signature(credential.server_key)
    assert ServerFinal(signature).encode() == SERVER_FINAL
    salted = SHA_256.salted_password("pencil", first.salt, first.iterations)
    assert exchange.proof(salted) == final.proof
    assert exchange.server_signature_of_salted(salted) == ServerFinal.decode(SERVER_FINAL).signature


def test_messages_of_the_example_are_encoded_as_they_were() -> None:
    assert ClientFirst.decode(FIRST).encode() == FIRST
    assert ServerFirst.decode(SERVER_FIRST).encode() == SERVER_FIRST
    assert ClientFinal.decode(FINAL).encode() == FINAL


@pytest.mark.parametrize("position", range(32))
def test_a_proof_with_one_wrong_byte_proves_nothing(position: int) -> None:
    first = ServerFirst.decode(SERVER_FIRST)
    credential = SHA_256.credential("pencil", first.salt, first.iterations)
    proof = bytearray(ClientFinal.decode(FINAL).proof)
    proof[position] ^= 1
    assert not exchange_of_the_rfc().is_proven(credential, bytes(proof))
    assert not exchange_of_the_rfc().is_proven(credential, bytes(proof[:position]))


@given(
    st.sampled_from(sorted(SCRAM_MECHANISMS)),
    st.text(max_size=8),
    st.binary(min_size=1, max_size=24),
)
def test_a_credential_survives_kafkas_format(name: str, password: str, salt: bytes) -> None:
    credential = SCRAM_MECHANISMS[name].credential(password, salt, 1)
    text = credential.encode()
    assert ScramCredential.decode(text) == credential
    assert text.startswith(f"salt={base64.b64encode(salt).decode()},stored_key=")
    assert text.endswith(",iterations=1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=YQ==,stored_key=YQ==,server_key=YQ==",
        "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=x",
        "salt=YQ==,stored_key=YQ==,server_key=Y,iterations=4096",
        "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=4096,more=1",
        "salt=YQ==,salt=YQ==,server_key=YQ==,iterations=4096",
    ],
)
def test_other_texts_are_no_credentials_and_are_not_repeated(text: str) -> None:
    with pytest.raises(SaslError) as raised:
        ScramCredential.decode(text)
    assert "YQ" not in str(raised.value)


NAMES = st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1)


@given(NAMES, st.text("abcXYZ019!/+", min_size=1), NAMES | st.just(""))
def test_any_ascii_name_comes_through(name: str, nonce: str, authorization_id: str) -> None:
    first = ClientFirst(name, nonce, authorization_id, {"tokenauth": "true"})
    assert ClientFirst.decode(first.encode()) == first
    assert client_first_bare(first.encode()) == first.bare


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"n,,n=,r=a",
        b"n,,n=user",
        b"n,,n=us,er,r=a",
        b"n,,n=us=2Der,r=a",
        b"y,,n=user,r=a",
        b"p=tls-unique,,n=user,r=a",
        b"n,,n=user,r=a\0",
        b"n,,n=user,r=a,",
        b"n,,n=user,r=a,1=b",
        b"n,,n=\xc3\xbcser,r=a",
        b"n,,n=\xff,r=a",
        b"n=user,r=a",
        b"n,,r=a,n=user",
    ],
)
def test_first_messages_that_kafka_refuses_are_refused(token: bytes) -> None:
    with pytest.raises(SaslError, match="client first"):
        ClientFirst.decode(token)


@pytest.mark.parametrize(
    "token",
    [b"", b"c=biws,r=a", b"c=biws,r=a,p=x", b"c=b,r=a,p=YQ==", b"r=a,p=YQ==", FINAL + b",x=y"],
)
def test_last_messages_that_kafka_refuses_are_refused(token: bytes) -> None:
    with pytest.raises(SaslError, match="client final"):
        ClientFinal.decode(token)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(token: bytes) -> None:
    for message in (ClientFirst, ServerFirst, ClientFinal, ServerFinal):
        try:
            message.decode(token)  # type: ignore[attr-defined]  # each has it
        except SaslError:
            continue
