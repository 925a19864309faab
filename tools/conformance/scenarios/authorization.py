"""What every API answers to a user to whom something is not allowed.

There is one scenario for each set of ACLs: nothing is allowed, everything is, all but one operation
on one type of resource, or only that. In each of them a user sends every API, and the answers are
compared. So nobody has to know what an API needs: it is what Kafka refuses.

A super user prepares what the requests are about, and says what the user may do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ....common.acl import (
    CLUSTER_NAME,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ....common.errors import ErrorCode
from ....protocol.api_keys import ApiKey
from ....protocol.codec.message import Message
from ....protocol.messages import (
    AddOffsetsToTxnRequest,
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    DeleteAclsRequest,
    DeleteGroupsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeDelegationTokenRequest,
    DescribeTopicPartitionsRequest,
    DescribeUserScramCredentialsRequest,
    ExpireDelegationTokenRequest,
    FetchRequest,
    FindCoordinatorRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
    ListPartitionReassignmentsRequest,
    ListTransactionsRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
    UpdateFeaturesRequest,
)
from ..brokers import ALICE
from ..connection import ConnectionClosedError
from ..requests import EARLIEST, batch, numbered, offset_listing, production
from ..scenario import NEWEST, scenario
from ..talk import GROUP, PRODUCE_BY_NAME, TRANSACTION, Talk
from . import (
    classic_groups,
    consumer_groups,
    streams_groups,
)
from .administration import describing_logs, electing, moving, reassigning, with_logs
from .cluster import metadata
from .configuration import (
    BROKER_NAME,
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    LOGGER_RESOURCE,
    METRICS_RESOURCE,
    SET,
    TOPIC_RESOURCE,
    changing,
    describing_configs,
    replacing,
)
from .offsets import committing, deleting, fetching
from .reading import BY_NAME, epoch_end, fetched
from .share import share_groups, share_offsets, share_states
from .topics import addition, creation, cut, deletion, more, new_topic
from .transactional_offsets import OFFSETS_AFTER_ADDING, offsets_in
from .transactions import (
    END_OF_FIRST_GENERATION,
    LAST_VERSION_OF_CLIENTS,
    PRODUCE_AFTER_ADDING,
    PRODUCE_THAT_ADDS,
    ProducerIdentity,
    adding,
    adding_as_broker,
    describing,
    ending,
    initiation,
    written,
)
from .transactions_described import describing_producers, marking

OPERATIONS = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""The operations that Kafka knows for each type of resource (AclEntry.supportedOperations)."""

MARKER = "User:marker"
"""For a last ACL: once a broker lists it, those before it are in force everywhere."""

UNUSED_USER = "nobody"
SCRAM_SHA_256 = 1
REPLICA_OF_NOBODY = 7
NO_DIRECTORY = "/no/such/folder"

Rule = tuple[ResourceType, Operation, Permission]


def _everything() -> tuple[Rule, ...]:
    return tuple((kind, Operation.ALL, Permission.ALLOW) for kind in OPERATIONS)


def _rules() -> dict[str, tuple[Rule, ...]]:
    rules: dict[str, tuple[Rule, ...]] = {"nothing": (), "everything": _everything()}
    for kind, operations in OPERATIONS.items():
        for operation in operations:
            words = f"{operation.name} on {kind.name}"
            denial = (kind, operation, Permission.DENY)
            rules[f"all but {words}"] = (*_everything(), denial)
            rules[f"only {words}"] = ((kind, operation, Permission.ALLOW),)
    return rules


RULES = _rules()
"""What is allowed to the user, by a title."""


# -- ACLs ----------------------------------------------------------------------------------


def _new_acl(principal: str, rule: Rule) -> CreateAclsRequest.AclCreation:
    kind, operation, permission = rule
    return CreateAclsRequest.AclCreation(
        resource_type=kind,
        resource_name=CLUSTER_NAME if kind is ResourceType.CLUSTER else WILDCARD,
        resource_pattern_type=PatternType.LITERAL,
        principal=principal,
        host=WILDCARD,
        operation=operation,
        permission_type=permission,
    )


def _filter_fields(principal: str) -> dict[str, Any]:
    return {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": principal,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }


def describing_acls(principal: str) -> DescribeAclsRequest:
    """A request for the ACLs of a principal."""
    return DescribeAclsRequest(**_filter_fields(principal))


def deleting_acls(*principals: str) -> DeleteAclsRequest:
    """A request to delete the ACLs of principals."""
    of_filter = DeleteAclsRequest.DeleteAclsFilter
    return DeleteAclsRequest(filters=[of_filter(**_filter_fields(each)) for each in principals])


def allow(talk: Talk, rules: tuple[Rule, ...]) -> None:
    """Give the user these rules and no others, and wait until they are in force."""
    principal = f"User:{ALICE.name}"
    talk.quietly(deleting_acls(principal, MARKER))
    talk.settle_quietly(describing_acls(MARKER), until=lambda answer: not answer.resources)
    creations = [_new_acl(principal, rule) for rule in rules]
    talk.quietly(CreateAclsRequest(creations=creations))
    marker = _new_acl(MARKER, (ResourceType.TOPIC, Operation.READ, Permission.ALLOW))
    talk.quietly(CreateAclsRequest(creations=[marker]))
    talk.settle_quietly(describing_acls(MARKER), until=lambda answer: bool(answer.resources))


# -- what the requests are about ----------------------------------------------------------


class Prepared(NamedTuple):
    """What a super user has made for one scenario.

    Attributes:
        own_token: the HMAC of a delegation token of the user's.
        others_token: that of one of somebody else's.
        made_tokens: those that the user has made.
        states: of share partitions of the topic, none of which is begun.
    """

    talk: Talk
    topic: str
    topic_id: bytes
    deleted_id: bytes
    member: classic_groups.Member
    producer: ProducerIdentity
    transaction: ProducerIdentity
    own_token: bytes
    others_token: bytes
    made_tokens: list[bytes]
    states: share_states.States

    def name(self, suffix: str) -> str:
        """A name of the scenario's own."""
        return self.talk.name(suffix)


def prepare(talk: Talk) -> Prepared:
    """Make topics, groups and producers as a super user."""
    topic = talk.name()
    topic_id = consumer_groups.topic_for_groups(talk, topic)
    talk.produce(topic, count=3)
    talk.create_topic(talk.name("by-name"))
    deleted_id = talk.create_topic(talk.name("by-id"))
    member = classic_groups.stable(talk, talk.name("classic"))
    consumer_groups.joined(talk, talk.name("consumer"), topic)
    for group in ("offsets", "unused"):
        talk.settled(committing(talk.name(group), topic, {0: 2}), BY_GROUP_AND_NAME)
    share_groups.ShareMember(talk, topic_id).join(topic)
    answer = talk.ask(initiation(None))
    producer = ProducerIdentity("", answer.producer_id, answer.producer_epoch)
    talk.wait_for_coordinator(talk.name("tx"), TRANSACTION)
    answer = talk.settled(initiation(talk.name("tx")))
    transaction = ProducerIdentity(talk.name("tx"), answer.producer_id, answer.producer_epoch)
    own_token = _make_token(talk, ALICE.name)
    others_token = _make_token(talk, talk.name("owner"))
    talk.quietly(quota_change(talk.name("limited"), 1000.0))
    talk.settle_quietly(quotas_of(talk.name("limited")), until=lambda answer: bool(answer.entries))
    talk.quietly(AlterUserScramCredentialsRequest(upsertions=[credential(talk.name("user"))]))
    talk.settle_quietly(
        describing_credentials(talk.name("user")),
        until=lambda answer: not answer.results[0].error_code,
    )
    return Prepared(
        talk,
        topic,
        topic_id,
        deleted_id,
        member,
        producer,
        transaction,
        own_token,
        others_token,
        [],
        share_states.States(talk, 1, topic_id),
    )


def _make_token(talk: Talk, owner: str) -> bytes:
    """Make a delegation token of a user; returns its HMAC once the broker knows it."""
    made = talk.quietly(creating_token(owner))
    described = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner(
        principal_type=USER, principal_name=owner
    )
    talk.settle_quietly(
        DescribeDelegationTokenRequest(owners=[described]),
        until=lambda answer: made.hmac in [each.hmac for each in answer.tokens],
    )
    hmac: bytes = made.hmac
    return hmac


def _remove_token(talk: Talk, user: Talk, hmac: bytes) -> None:
    """Remove a token that a user has made, if it is the user's own.

    Both are only soon known to Kafka's broker, the token and its end.
    """
    answer = user.settle_quietly(
        ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1),
        passing=(ErrorCode.DELEGATION_TOKEN_NOT_FOUND,),
    )
    if answer.error_code:
        return
    talk.settle_quietly(
        DescribeDelegationTokenRequest(owners=None),
        until=lambda answer: hmac not in [each.hmac for each in answer.tokens],
    )


BY_GROUP_AND_NAME = 9
"""The newest version of OffsetCommit and OffsetFetch that names topics."""

Requests = Iterator[tuple[Message, int | None]]


def _about_topics(at: Prepared) -> Requests:
    everything: dict[str, bool] = {"include_topic_authorized_operations": True}
    yield ApiVersionsRequest(client_software_name="a", client_software_version="1"), None
    yield metadata(at.topic, "absent-topic", **everything), None
    yield metadata(at.topic_id, b"n" * 16, **everything), None
    with_cluster = metadata(at.topic, include_cluster_authorized_operations=True)
    yield with_cluster, CLUSTER_OPERATIONS_VERSION
    yield metadata(at.name("created-by-metadata"), allow_auto_topic_creation=True), None
    yield DescribeClusterRequest(include_cluster_authorized_operations=True), None
    of_topic = DescribeTopicPartitionsRequest.TopicRequest
    yield DescribeTopicPartitionsRequest(topics=[of_topic(name=at.topic)]), None
    yield DescribeTopicPartitionsRequest(topics=[of_topic(name="absent-topic")]), None
    yield production(at.topic, {0: batch(*numbered(1))}), PRODUCE_BY_NAME
    yield production(at.topic_id, {0: batch(*numbered(1))}), None
    yield production("absent-topic", {0: batch(*numbered(1))}), PRODUCE_BY_NAME
    identity = {"producer_id": at.producer.id, "producer_epoch": at.producer.epoch}
    idempotent = batch(*numbered(1), base_sequence=0, **identity)
    yield production(at.topic, {0: idempotent}), PRODUCE_BY_NAME
    yield fetched(at.topic, {0: 0}), BY_NAME
    yield fetched(at.topic_id, {0: 0}), None
    yield fetched("absent-topic", {0: 0}), BY_NAME
    yield fetched(at.topic, {0: 0}, replica_id=REPLICA_OF_NOBODY), BY_NAME
    follower = FetchRequest.ReplicaState(replica_id=REPLICA_OF_NOBODY)
    yield fetched(at.topic_id, {0: 0}, replica_state=follower), None
    yield offset_listing(at.topic, {0: EARLIEST}), None
    yield offset_listing("absent-topic", {0: EARLIEST}), None
    yield epoch_end(at.topic, {0: 0}), None
    yield epoch_end("absent-topic", {0: 0}), None
    yield describing_producers(at.topic, 0), None
    yield describing_producers("absent-topic", 0), None


CLUSTER_OPERATIONS_VERSION = 10
"""The newest version of Metadata that says what is allowed with the cluster."""


def _about_groups(at: Prepared) -> Requests:
    both = [at.name("classic"), "absent-group"]
    yield FindCoordinatorRequest(key_type=GROUP, coordinator_keys=both), None
    yield FindCoordinatorRequest(key_type=GROUP, key=at.name("classic")), FIRST_FIND
    yield classic_groups.describing(*both, operations=True), None
    yield consumer_groups.describe(at.name("consumer"), "absent-group", operations=True), None
    yield ListGroupsRequest(), None
    yield classic_groups.heartbeat(at.member), None
    yield classic_groups.syncing(at.member), None
    yield classic_groups.joining(at.name("classic"), at.member.id), None
    yield classic_groups.joining(at.name("joined")), None
    yield classic_groups.leaving(LEAVE_VERSION, at.name("classic"), ("unknown", None)), None
    beat = consumer_groups.beat(
        at.name("joined-consumer"), consumer_groups.CHOSEN, subscribed_topic_names=[at.topic]
    )
    yield beat, None
    by_pattern = consumer_groups.beat(
        at.name("joined-pattern"),
        consumer_groups.CHOSEN,
        subscribed_topic_names=[],
        subscribed_topic_regex="no-such-topic.*",
    )
    yield by_pattern, None
    log = streams_groups.internal(at.name("log"))
    reported = streams_groups.reading(at.topic, state_changelog_topics=[log])
    streams = at.name("joined-streams")
    yield streams_groups.beat(streams, topology=streams_groups.topology(reported)), None
    yield (
        StreamsGroupDescribeRequest(
            group_ids=[streams, "absent-group"], include_authorized_operations=True
        ),
        None,
    )
    group = at.name("offsets")
    yield committing(group, at.topic, {0: 1}), BY_GROUP_AND_NAME
    yield committing(group, at.topic_id, {0: 1}), None
    yield committing(group, "absent-topic", {0: 1}), BY_GROUP_AND_NAME
    yield fetching(BY_GROUP_AND_NAME, group, at.topic, 0), BY_GROUP_AND_NAME
    yield fetching(BY_GROUP_AND_NAME, group, "absent-topic", 0), BY_GROUP_AND_NAME
    yield fetching(BY_GROUP_AND_NAME, group, None), BY_GROUP_AND_NAME
    yield fetching(OLD_OFFSET_FETCH, group, at.topic, 0), OLD_OFFSET_FETCH
    yield fetching(BY_GROUP_AND_NAME + 1, group, at.topic_id, 0), None
    yield fetching(BY_GROUP_AND_NAME + 1, group, None), None
    yield deleting(group, at.topic, 0), None
    yield deleting(group, "absent-topic", 0), None
    yield DeleteGroupsRequest(groups_names=[at.name("unused"), "absent-group"]), None


def _about_share_groups(at: Prepared) -> Requests:
    group, other = at.topic, at.name("share-other")
    unknown: dict[str, Any] = {"member": share_groups.SECOND, "epoch": 1}
    yield share_groups.beat(group, **unknown, subscribed_topic_names=[at.topic]), None
    yield share_groups.beat(group, **unknown), None
    yield share_groups.beat(other, subscribed_topic_names=["absent-topic"]), None
    both = [group, "absent-group"]
    yield ShareGroupDescribeRequest(group_ids=both, include_authorized_operations=True), None
    reader = share_groups.ShareMember(at.talk, at.topic_id)
    said = {NO_PARTITION: [(0, 0, [share_groups.ACCEPT])]}
    fetch = reader.fetching()
    fetch.topics[0].partitions[0].partition_index = NO_PARTITION
    yield fetch, None
    yield reader.acknowledging(said, share_session_epoch=1), None
    yield reader.acknowledging(said, share_session_epoch=1, group_id="absent-group"), None
    yield share_offsets.describing(group), None
    yield share_offsets.describing(group, {at.topic: [0], "absent-topic": [0]}), None
    new = at.name("share-new")
    yield share_offsets.altering(new, {at.topic: {0: 1}, "absent-topic": {0: 1}}), None
    yield share_offsets.altering(group, {at.topic: {0: 1}}), None
    yield share_offsets.deleting(new, at.topic, "absent-topic"), None
    yield share_offsets.deleting(group, at.topic), None
    yield at.states.initialize(group_id=other), None
    yield at.states.read(group_id=other), None
    yield at.states.write((0, 0, share_states.ACKNOWLEDGED, 1), group_id=other), None
    yield at.states.summary(group_id=other), None
    yield at.states.delete(group_id=other), None


NO_PARTITION = 7
FIRST_FIND, OLD_OFFSET_FETCH, LEAVE_VERSION = 3, 5, 5


def _about_transactions(at: Prepared) -> Requests:
    mine = at.transaction
    name = mine.transactional_id
    yield FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[name]), None
    yield initiation(None), None
    yield initiation(at.name("tx-new")), None
    yield adding(mine, {at.topic: [0], "absent-topic": [0]}), LAST_VERSION_OF_CLIENTS
    yield adding(mine, {at.topic: [0]}), LAST_VERSION_OF_CLIENTS
    yield adding_as_broker(mine, {at.topic: [0]}, verify_only=True), None
    yield written(mine, at.topic), PRODUCE_AFTER_ADDING
    yield written(mine, at.topic, 2), PRODUCE_THAT_ADDS
    yield AddOffsetsToTxnRequest(group_id=at.name("offsets"), **mine.fields()), None
    yield offsets_in(mine, at.name("offsets"), at.topic, 1), OFFSETS_AFTER_ADDING
    yield offsets_in(mine, at.name("offsets"), "absent-topic", 1), None
    yield describing(name, "absent-transaction"), None
    yield ListTransactionsRequest(), None
    yield ending(mine), END_OF_FIRST_GENERATION
    yield marking(at.producer, {at.topic: [0]}), None


def _about_settings(at: Prepared) -> Requests:
    topic = at.topic
    yield describing_configs(TOPIC_RESOURCE, topic, "max.message.bytes"), None
    yield describing_configs(TOPIC_RESOURCE, "absent-topic", "retention.ms"), None
    yield describing_configs(BROKER_RESOURCE, BROKER_NAME, "log.retention.ms"), None
    yield describing_configs(LOGGER_RESOURCE, BROKER_NAME, "no.such.logger"), None
    yield describing_configs(GROUP_RESOURCE, at.name("offsets"), "no.such.setting"), None
    yield describing_configs(METRICS_RESOURCE, "absent"), None
    smaller = ("max.message.bytes", SET, "900000")
    yield changing(TOPIC_RESOURCE, topic, smaller), None
    yield changing(TOPIC_RESOURCE, "absent-topic", smaller), None
    yield changing(BROKER_RESOURCE, BROKER_NAME, ("log.cleaner.threads", SET, "1"), dry=True), None
    session = ("consumer.session.timeout.ms", SET, "46000")
    yield changing(GROUP_RESOURCE, at.name("offsets"), session), None
    yield changing(METRICS_RESOURCE, at.name("m"), ("interval.ms", SET, "60000"), dry=True), None
    level = ("no.such.logger", SET, "INFO")
    yield changing(LOGGER_RESOURCE, BROKER_NAME, level, dry=True), None
    yield replacing(TOPIC_RESOURCE, topic, {"max.message.bytes": "800000"}), None
    yield replacing(BROKER_RESOURCE, BROKER_NAME, {"log.cleaner.threads": "1"}, dry=True), None
    yield ListConfigResourcesRequest(resource_types=[BROKER_RESOURCE]), None
    yield ListConfigResourcesRequest(), 0


USER = "User"
HOUR_MS = 3_600_000


def creating_token(owner: str | None) -> CreateDelegationTokenRequest:
    """A request for a delegation token; None: of whoever sends it."""
    return CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else USER,
        owner_principal_name=owner,
        max_lifetime_ms=HOUR_MS,
    )


def _about_tokens(at: Prepared) -> Requests:
    owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    yield DescribeDelegationTokenRequest(owners=None), None
    for name in (ALICE.name, at.name("owner"), UNUSED_USER):
        owners = [owner(principal_type=USER, principal_name=name)]
        yield DescribeDelegationTokenRequest(owners=owners), None
    for hmac in (at.own_token, at.others_token, b"no such token"):
        yield RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=HOUR_MS), None
        yield ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1), None
    yield creating_token(None), None
    yield creating_token(at.name("owner")), None


def quota_change(client_id: str, rate: float, *, dry: bool = False) -> AlterClientQuotasRequest:
    """A request to bound what a client id may produce."""
    request = AlterClientQuotasRequest
    entity = [request.EntityData(entity_type="client-id", entity_name=client_id)]
    change = request.OpData(key="producer_byte_rate", value=rate)
    return request(entries=[request.EntryData(entity=entity, ops=[change])], validate_only=dry)


def quotas_of(client_id: str) -> DescribeClientQuotasRequest:
    """A request for the quotas of a client id."""
    exact = DescribeClientQuotasRequest.ComponentData(
        entity_type="client-id", match_type=0, match=client_id
    )
    return DescribeClientQuotasRequest(components=[exact], strict=True)


def credential(user: str) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    """A password of a user."""
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user,
        mechanism=SCRAM_SHA_256,
        iterations=4096,
        salt=b"salt",
        salted_password=b"p" * 32,
    )


def describing_credentials(user: str) -> DescribeUserScramCredentialsRequest:
    """A request for what passwords a user has."""
    name = DescribeUserScramCredentialsRequest.UserName(name=user)
    return DescribeUserScramCredentialsRequest(users=[name])


def _about_quotas_and_users(at: Prepared) -> Requests:
    yield DescribeClientQuotasRequest(strict=True, components=[]), None
    yield quotas_of(at.name("limited")), None
    yield quota_change(at.name("limited"), 0.0), None
    yield quota_change(at.name("limited"), 2000.0, dry=True), None
    yield quota_change(at.name("limited"), 2000.0), None
    yield describing_credentials(UNUSED_USER), None
    yield describing_credentials(at.name("user")), None
    yield AlterUserScramCredentialsRequest(upsertions=[credential(at.name("another"))]), None
    gone = AlterUserScramCredentialsRequest.ScramCredentialDeletion
    for user in (UNUSED_USER, at.name("user")):
        deletions = [gone(name=user, mechanism=SCRAM_SHA_256)]
        yield AlterUserScramCredentialsRequest(deletions=deletions), None


def _about_the_cluster(at: Prepared) -> Requests:
    yield describing_logs(at.topic, 0), None
    yield moving(NO_DIRECTORY, at.topic, 0), None
    yield electing(at.topic, 0), None
    yield reassigning(at.topic, {0: None}), None
    of_topic = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    listed = of_topic(name=at.topic, partition_indexes=[0])
    yield ListPartitionReassignmentsRequest(topics=[listed]), None
    update = UpdateFeaturesRequest.FeatureUpdateKey
    unknown = update(feature="no.such.feature", max_version_level=1)
    yield UpdateFeaturesRequest(feature_updates=[unknown], validate_only=True), None
    principal = f"User:{UNUSED_USER}"
    yield describing_acls(principal), None
    rule = (ResourceType.TOPIC, Operation.READ, Permission.ALLOW)
    yield CreateAclsRequest(creations=[_new_acl(principal, rule)]), None
    yield deleting_acls(principal), None
    yield SaslHandshakeRequest(mechanism="PLAIN"), None
    yield SaslAuthenticateRequest(auth_bytes=b""), None


def _that_change_topics(at: Prepared) -> Requests:
    yield cut(at.topic, {0: 1}), None
    yield cut("absent-topic", {0: 1}), None
    yield creation(new_topic(at.name("created")), new_topic(at.topic)), None
    yield creation(new_topic(at.name("checked")), validate_only=True), None
    yield addition(more(at.topic, 2), more("absent-topic", 2)), None
    yield deletion(DELETE_BY_NAME, at.name("by-name"), "absent-topic"), DELETE_BY_NAME
    yield deletion(DELETE_BY_NAME + 1, ids=(at.deleted_id, b"n" * 16)), None
    yield deletion(DELETE_BY_NAME + 1, "absent-topic"), None


DELETE_BY_NAME = 5


def requests(at: Prepared) -> Requests:
    """Every API that is served, each with what it needs and with something that is absent."""
    yield from _about_topics(at)
    yield from _about_groups(at)
    yield from _about_share_groups(at)
    yield from _about_transactions(at)
    yield from _about_settings(at)
    yield from _about_quotas_and_users(at)
    yield from _about_tokens(at)
    yield from _about_the_cluster(at)
    yield from _that_change_topics(at)


# -- what of an answer is other scenarios' ------------------------------------------------


def _own_groups(at: Prepared, answer: Any) -> None:
    answer.groups = [each for each in answer.groups if each.group_id.startswith(at.topic)]


def _own_transactions(at: Prepared, answer: Any) -> None:
    answer.transaction_states = [
        each for each in answer.transaction_states if each.transactional_id.startswith(at.topic)
    ]


def _own_logs(_at: Prepared, answer: Any) -> None:
    with_logs(answer)


def _own_resources(at: Prepared, answer: Any) -> None:
    answer.config_resources = [
        each for each in answer.config_resources if each.resource_type == BROKER_RESOURCE
    ]


def _own_tokens(at: Prepared, answer: Any) -> None:
    owners = {ALICE.name, at.name("owner")}
    answer.tokens = sorted(
        (each for each in answer.tokens if each.principal_name in owners),
        key=lambda each: (str(each.principal_name), str(each.token_requester_principal_name)),
    )
    for each in answer.tokens:
        each.token_id, each.hmac = "", b""
        each.issue_timestamp = each.expiry_timestamp = each.max_timestamp = 0


def _new_token(at: Prepared, answer: Any) -> None:
    if answer.hmac:
        at.made_tokens.append(answer.hmac)
    answer.token_id, answer.hmac = "", b""
    lifetime_ms = answer.max_timestamp_ms - answer.issue_timestamp_ms
    answer.issue_timestamp_ms, answer.expiry_timestamp_ms = 0, 0
    answer.max_timestamp_ms = lifetime_ms


def _end_of_token(_at: Prepared, answer: Any) -> None:
    if answer.expiry_timestamp_ms > 0:
        answer.expiry_timestamp_ms = 0


NARROWED: dict[int | None, Callable[[Prepared, Any], None]] = {
    ApiKey.LIST_GROUPS: _own_groups,
    ApiKey.LIST_TRANSACTIONS: _own_transactions,
    ApiKey.DESCRIBE_LOG_DIRS: _own_logs,
    ApiKey.LIST_CONFIG_RESOURCES: _own_resources,
    ApiKey.CREATE_DELEGATION_TOKEN: _new_token,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _own_tokens,
    ApiKey.RENEW_DELEGATION_TOKEN: _end_of_token,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _end_of_token,
}


@scenario(ApiKey.CREATE_ACLS, NEWEST, cases=RULES, needs_authorizer=True)
def user_may_do(talk: Talk, rules: tuple[Rule, ...]) -> None:
    at = prepare(talk)
    allow(talk, rules)
    user = talk.another(ALICE)
    for request, version in requests(at):
        try:
            answer = user.settled(request, version, passing=LOADING)
        except ConnectionClosedError:
            user.reconnect()
            continue
        narrow = NARROWED.get(type(request).api_key)
        if narrow is not None:
            narrow(at, answer)
    for hmac in at.made_tokens:  # lest the next scenario find those that are the user's
        _remove_token(talk, user, hmac)


LOADING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
"""Errors that pass, whatever is allowed."""


@scenario(
    ApiKey.CREATE_ACLS,
    NEWEST,
    cases={
        "resource type": {"resource_type": 99},
        "no resource type": {"resource_type": 0},
        "any resource type": {"resource_type": ResourceType.ANY},
        "pattern type": {"resource_pattern_type": 99},
        "matching pattern": {"resource_pattern_type": PatternType.MATCH},
        "operation": {"operation": 99},
        "any operation": {"operation": Operation.ANY},
        "permission": {"permission_type": 99},
        "any permission": {"permission_type": Permission.ANY},
        "name of a cluster": {"resource_type": ResourceType.CLUSTER, "resource_name": "mine"},
        "empty name": {"resource_name": ""},
        "principal": {"principal": "alice"},
    },
    needs_authorizer=True,
)
def acl_to_create_has_an_unusual(talk: Talk, fields: dict[str, Any]) -> None:
    creation_of = _new_acl(MARKER, (ResourceType.TOPIC, Operation.READ, Permission.ALLOW))
    for name, value in fields.items():
        setattr(creation_of, name, value)
    talk.refused(CreateAclsRequest(creations=[creation_of]))


@scenario(
    ApiKey.DELETE_ACLS,
    NEWEST,
    cases={
        "resource type": {"resource_type_filter": 99},
        "pattern type": {"pattern_type_filter": 99},
        "operation": {"operation": 99},
        "permission": {"permission_type": 0},
    },
    needs_authorizer=True,
)
def filter_has_an_unknown(talk: Talk, fields: dict[str, Any]) -> None:
    given = {**_filter_fields(MARKER), **fields}
    talk.refused(DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**given)]))
    talk.refused(DescribeAclsRequest(**given))
