"""What a console changes of a cluster besides topics, records and groups; and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.console import Console, require_harmless
from support.hanging_transaction import LOST_PRODUCER_ID, leave_hanging

from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "transaction.partition.verification.enable": "false",
}


@pytest.fixture(scope="module")
def guarded(start_module_broker: Callable[..., Any]) -> Any:
    """A broker with ACLs, where a transaction can hang."""
    return start_module_broker(settings=SETTINGS)


@pytest.fixture(scope="module")
def steered(guarded: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A console of it that may change things."""
    log = tmp_path_factory.mktemp("console") / "log"
    with Console(guarded.bootstrap, log, ["--console-write"]) as started:
        yield started
    assert "Traceback" not in log.read_text()


def forms_of(console: Console, path: str, action: str) -> list[dict[str, str]]:
    """The hidden fields of each form of a page that leads to an address."""
    form = re.compile(rf'<form [^>]*action="{action}"[^>]*>(.*?)</form>', re.DOTALL)
    hidden = re.compile(r'type="hidden" name="([^"]+)" value="([^"]*)"')
    return [dict(hidden.findall(each)) for each in form.findall(console.get(path).html)]


def test_broker_setting_is_checked_set_and_unset(steered: Console) -> None:
    path = next(each for each in steered.page("/").links() if each.startswith("/brokers/"))
    name = "log.cleaner.threads"
    change = f"{path}/setting"
    assert f"{change}?name={name}" in steered.page(f"{path}?search={name}").links()
    shown = steered.page(f"{change}?name={name}").text
    assert "Comes from default" in shown
    assert "Threads that compact logs." in shown

    fields = {"name": name, "value": "2", "scope": "broker"}
    checked = steered.post(change, {**fields, "check": 1})
    require_harmless(checked.html)
    assert "would take 2 for broker" in checked.page.text
    assert "Comes from default" in steered.page(f"{change}?name={name}").text
    refused = steered.post(change, {**fields, "value": "-1", "check": 1})
    assert (refused.status, name in refused.page.text) == (409, True)

    assert steered.post(change, fields).status == 303
    wait_until(lambda: "Comes from this broker" in steered.page(f"{change}?name={name}").text)
    assert steered.post(change, {**fields, "reset": 1}).status == 303
    wait_until(lambda: "Comes from default" in steered.page(f"{change}?name={name}").text)
    everywhere = {**fields, "scope": "all"}
    assert steered.post(change, everywhere).status == 303
    wait_until(lambda: "all brokers, dynamic" in steered.page(f"{change}?name={name}").text)

    assert "at a restart only" in steered.get(f"{change}?name=broker.id").page.text
    assert "has no setting" in steered.get(f"{change}?name=none").page.text


def test_acl_is_added_and_just_that_one_removed(steered: Console) -> None:
    acl = {"principal": "<b>alice</b>", "operation": "Read", "resource": "Topic", "name": "orders-"}
    for pattern in ("Literal", "Prefixed"):
        assert steered.post("/access/acls", {**acl, "pattern": pattern}).status == 303
    wait_until(lambda: "2 ACLs" in steered.page("/access").text)
    require_harmless(steered.get("/access").html)
    assert "User:<b>alice</b> allow read topic orders-" in steered.page("/access").text
    prefixed = {**acl, "principal": f"User:{acl['principal']}", "pattern": "Prefixed", "host": "*"}
    assert len(forms_of(steered, "/access", "/access/acls/remove")) == 2
    assert steered.post("/access/acls/remove", prefixed).status == 303
    wait_until(lambda: "1 of 1 ACLs" in steered.page("/access").text)
    (left,) = forms_of(steered, "/access", "/access/acls/remove")
    assert left["pattern"] == "Literal"
    nobody = steered.post("/access/acls", {**acl, "principal": ""})
    assert (nobody.status, "is no principal" in nobody.page.text) == (400, True)


def test_user_is_added_and_removed(steered: Console) -> None:
    user = {"user": "carol", "mechanism": "SCRAM-SHA-256"}
    added = steered.post("/access/users", {**user, "password": "a secret", "iterations": 5000})
    assert added.status == 303
    wait_until(lambda: "carol SCRAM-SHA-256 5,000 iterations" in steered.page("/access").text)
    (fields,) = forms_of(steered, "/access", "/access/users/remove")
    assert {name: fields[name] for name in user} == user
    assert steered.post("/access/users/remove", fields).status == 303
    wait_until(lambda: "carol" not in steered.page("/access").text)
    assert steered.post("/access/users", {**user, "password": ""}).status == 400


def test_quota_is_set_and_removed(steered: Console) -> None:
    quota = {"user": "dave", "client-id-default": 1, "quota": "producer_byte_rate"}
    assert steered.post("/access/quotas", {**quota, "value": 2048}).status == 303
    wait_until(lambda: "producer_byte_rate 2.0 KiB/s" in steered.page("/access").text)
    page = steered.page("/access").text
    assert "user dave" in page
    assert "client-id (default)" in page
    fields, _ = forms_of(steered, "/access", "/access/quotas")
    assert steered.post("/access/quotas", {**fields, "remove": 1}).status == 303
    wait_until(lambda: "nobody is throttled" in steered.page("/access").text)
    for wrong in ({"value": "many"}, {"value": 1, "ip": "10.0.0.7"}):
        assert steered.post("/access/quotas", {**quota, **wrong}).status == 400


def test_hanging_transaction_is_found_and_aborted(
    steered: Console, guarded: Any, topic: str
) -> None:
    assert steered.post("/topics", {"name": topic, "settings": "retention.ms=-1"}).status == 303
    leave_hanging(guarded.port, topic)
    found = steered.get("/transactions/hanging")
    require_harmless(found.html)
    assert f"{topic}:0 0 {LOST_PRODUCER_ID}" in found.page.text
    assert 'name="minutes" min="0" value="15"' in found.html  # the broker's own limit
    assert "No transaction hangs" in steered.page("/transactions/hanging?minutes=100000000").text
    (path,) = (link for link in found.page.links() if "/hanging/abort" in link)
    assert "No coordinator knows its producer" in steered.page(path).text

    (fields,) = forms_of(steered, path, "/transactions/hanging/abort")
    assert steered.post("/transactions/hanging/abort", {**fields, "name": "x"}).status == 400
    records = f"/topics/{topic}/records?committed=1"
    assert "There are no records here" in steered.page(records).text
    assert steered.post("/transactions/hanging/abort", {**fields, "name": topic}).status == 303
    assert "No transaction hangs" in steered.page("/transactions/hanging").text
    assert "ABORT marker" in steered.page(f"/topics/{topic}/records").text
    again = steered.post("/transactions/hanging/abort", {**fields, "name": topic})
    assert (again.status, "no transaction hangs there" in again.page.text) == (400, True)
