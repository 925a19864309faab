"""Listeners: where to accept connections and what to tell clients."""

from __future__ import annotations

import pytest

from odradek.config import BrokerConfig, ConfigError
from odradek.config.listeners import Listener, advertise, bind_hosts


def config(**settings):
    return BrokerConfig.from_sources({}, {key.replace("_", "."): v for key, v in settings.items()})


def refusal(**settings):
    with pytest.raises(ConfigError) as refused:
        config(**settings)
    return str(refused.value)


def plaintext(host, port):
    return Listener("PLAINTEXT", "PLAINTEXT", host, port)


def test_default_is_every_interface_on_9092():
    assert config().listeners == (plaintext("", 9092),)
    assert config().advertised_listeners is None


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("PLAINTEXT://127.0.0.1:9092", "127.0.0.1", 9092),
        ("PLAINTEXT://[::1]:9092", "::1", 9092),
        ("PLAINTEXT://[fe80::1%eth0]:9092", "fe80::1%eth0", 9092),
        ("PLAINTEXT://localhost:0", "localhost", 0),
        ("PLAINTEXT://broker_1.example.org:65535", "broker_1.example.org", 65535),
        ("plaintext://:9092", "", 9092),
    ],
)
def test_listener_is_a_name_a_host_and_a_port(text, host, port):
    assert config(listeners=text).listeners == (plaintext(host, port),)


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:9092",
        "PLAINTEXT://127.0.0.1",
        "PLAINTEXT://127.0.0.1:",
        "PLAINTEXT://127.0.0.1:-1",
        "PLAINTEXT://127.0.0.1:65536",
        "PLAINTEXT://127.0.0.1:٣",
        "PLAINTEXT://::1:9092",
        "PLAINTEXT://a b:9092",
        "PLAINTEXT:/127.0.0.1:9092",
        "://127.0.0.1:9092",
        "",
    ],
)
def test_anything_else_is_refused(text):
    assert "listeners" in refusal(listeners=text)


def test_protocol_of_a_named_listener_comes_from_the_map():
    made = config(
        listeners="INSIDE://:9092,OUTSIDE://:9093",
        listener_security_protocol_map="INSIDE:PLAINTEXT, OUTSIDE:SASL_SSL",
        inter_broker_listener_name="inside",
    )
    assert [(one.name, one.security_protocol) for one in made.listeners] == [
        ("INSIDE", "PLAINTEXT"),
        ("OUTSIDE", "SASL_SSL"),
    ]
    assert made.inter_broker_listener_name == "INSIDE"


@pytest.mark.parametrize("protocols", ["INSIDE", "INSIDE:TLS", "INSIDE:SSL,inside:PLAINTEXT"])
def test_broken_protocol_map_is_refused(protocols):
    assert "listener.security.protocol.map" in refusal(listener_security_protocol_map=protocols)


def test_listener_without_a_protocol_is_refused_with_what_to_add():
    assert "INSIDE:PLAINTEXT" in refusal(listeners="INSIDE://:9092")


def test_names_and_ports_stand_once():
    assert "PLAINTEXT twice" in refusal(listeners="PLAINTEXT://a:1,PLAINTEXT://b:2")
    assert "port 1 twice" in refusal(listeners="PLAINTEXT://a:1,SSL://b:1")
    config(listeners="PLAINTEXT://a:0,SSL://b:0")


def test_one_port_may_have_an_ipv4_and_an_ipv6_address():
    pair = config(listeners="PLAINTEXT://127.0.0.1:9092,PLAINTEXT://[::1]:9092").listeners
    assert [one.host for one in pair] == ["127.0.0.1", "::1"]
    assert "twice" in refusal(listeners="PLAINTEXT://127.0.0.1:1,PLAINTEXT://[::1]:2")
    assert "twice" in refusal(listeners="PLAINTEXT://127.0.0.1:1,SSL://127.0.0.2:1")


def test_advertised_listeners_must_be_listened_on_and_reachable():
    assert "SSL" in refusal(advertised_listeners="SSL://a:1")
    assert "0.0.0.0" in refusal(advertised_listeners="PLAINTEXT://0.0.0.0:9092")
    assert "twice" in refusal(advertised_listeners="PLAINTEXT://a:1,PLAINTEXT://b:2")


def test_brokers_need_a_listener_among_themselves():
    refused = refusal(
        listeners="OUTSIDE://:9092", listener_security_protocol_map="OUTSIDE:PLAINTEXT"
    )
    assert "inter.broker.listener.name" in refused
    assert "OUTSIDE" in refused
    both = refusal(
        inter_broker_listener_name="PLAINTEXT", security_inter_broker_protocol="PLAINTEXT"
    )
    assert "both" in both


def test_controller_listeners_of_a_kraft_file_are_passed_over():
    made = config(
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
        advertised_listeners="PLAINTEXT://here:9092,CONTROLLER://here:9093",
        controller_listener_names="CONTROLLER",
    )
    assert made.listeners == (plaintext("", 9092),)
    assert made.advertised_listeners == (plaintext("here", 9092),)


def test_localhost_and_no_host_bind_both_families():
    assert bind_hosts(plaintext("localhost", 1)) == ("127.0.0.1", "::1")
    assert bind_hosts(plaintext("", 1)) == ("0.0.0.0", "::")
    assert bind_hosts(plaintext("10.1.2.3", 1)) == ("10.1.2.3",)


def not_looked_up() -> str:
    pytest.fail("this machine's name takes long to look up, and is not needed")


def test_without_advertised_listeners_clients_get_what_is_bound():
    listeners = (plaintext("localhost", 0), Listener("SSL", "SSL", "", 9093))
    reported = advertise(listeners, None, {"PLAINTEXT": 41000, "SSL": 9093}, lambda: "my-machine")
    assert reported == (plaintext("localhost", 41000), Listener("SSL", "SSL", "my-machine", 9093))


def test_pair_of_families_is_advertised_by_its_first_address():
    listeners = (plaintext("127.0.0.1", 9092), plaintext("::1", 9092))
    assert advertise(listeners, None, {}, not_looked_up) == (plaintext("127.0.0.1", 9092),)


def test_advertised_listeners_win_and_take_the_bound_port_for_0():
    advertised = (plaintext("outside.example.org", 0),)
    reported = advertise((plaintext("", 0),), advertised, {"PLAINTEXT": 41000}, not_looked_up)
    assert reported == (plaintext("outside.example.org", 41000),)


def test_address_is_written_with_brackets_around_ipv6():
    assert str(plaintext("::1", 9092)) == "PLAINTEXT://[::1]:9092"
    assert str(plaintext("a", 1)) == "PLAINTEXT://a:1"
