"""Every request and response of Kafka's protocol, by name: `messages.FetchRequest`.

One module per API; a module is imported when one of its messages is first used. Type checkers,
which see no `__getattr__`, find the messages by the imports below.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..api_keys import ApiKey

if TYPE_CHECKING:
    from ..codec.message import MessageType
    from .add_offsets_to_txn import *
    from .add_partitions_to_txn import *
    from .add_raft_voter import *
    from .allocate_producer_ids import *
    from .alter_client_quotas import *
    from .alter_configs import *
    from .alter_partition import *
    from .alter_partition_reassignments import *
    from .alter_replica_log_dirs import *
    from .alter_share_group_offsets import *
    from .alter_user_scram_credentials import *
    from .api_versions import *
    from .assign_replicas_to_dirs import *
    from .begin_quorum_epoch import *
    from .broker_heartbeat import *
    from .broker_registration import *
    from .consumer_group_describe import *
    from .consumer_group_heartbeat import *
    from .controlled_shutdown import *
    from .controller_registration import *
    from .create_acls import *
    from .create_delegation_token import *
    from .create_partitions import *
    from .create_topics import *
    from .delete_acls import *
    from .delete_groups import *
    from .delete_records import *
    from .delete_share_group_offsets import *
    from .delete_share_group_state import *
    from .delete_topics import *
    from .describe_acls import *
    from .describe_client_quotas import *
    from .describe_cluster import *
    from .describe_configs import *
    from .describe_delegation_token import *
    from .describe_groups import *
    from .describe_log_dirs import *
    from .describe_producers import *
    from .describe_quorum import *
    from .describe_share_group_offsets import *
    from .describe_topic_partitions import *
    from .describe_transactions import *
    from .describe_user_scram_credentials import *
    from .elect_leaders import *
    from .end_quorum_epoch import *
    from .end_txn import *
    from .envelope import *
    from .expire_delegation_token import *
    from .fetch import *
    from .fetch_snapshot import *
    from .find_coordinator import *
    from .get_telemetry_subscriptions import *
    from .heartbeat import *
    from .incremental_alter_configs import *
    from .init_producer_id import *
    from .initialize_share_group_state import *
    from .join_group import *
    from .leader_and_isr import *
    from .leave_group import *
    from .list_config_resources import *
    from .list_groups import *
    from .list_offsets import *
    from .list_partition_reassignments import *
    from .list_transactions import *
    from .metadata import *
    from .offset_commit import *
    from .offset_delete import *
    from .offset_fetch import *
    from .offset_for_leader_epoch import *
    from .produce import *
    from .push_telemetry import *
    from .read_share_group_state import *
    from .read_share_group_state_summary import *
    from .remove_raft_voter import *
    from .renew_delegation_token import *
    from .sasl_authenticate import *
    from .sasl_handshake import *
    from .share_acknowledge import *
    from .share_fetch import *
    from .share_group_describe import *
    from .share_group_heartbeat import *
    from .stop_replica import *
    from .streams_group_describe import *
    from .streams_group_heartbeat import *
    from .sync_group import *
    from .txn_offset_commit import *
    from .unregister_broker import *
    from .update_features import *
    from .update_metadata import *
    from .update_raft_voter import *
    from .vote import *
    from .write_share_group_state import *
    from .write_txn_markers import *

SIDES = ("Request", "Response")


@cache
def request_message(api_key: int) -> MessageType:
    """The request of an API.

    Raises:
        ValueError: there is no such API.
    """
    return _find(_base_name(ApiKey(api_key)) + "Request")


@cache
def response_message(api_key: int) -> MessageType:
    """The response of an API.

    Raises:
        ValueError: there is no such API.
    """
    return _find(_base_name(ApiKey(api_key)) + "Response")


def message_names() -> list[str]:
    """The names of all messages, in the order of their API keys."""
    return list(_modules_by_message())


def names_by_module() -> dict[str, tuple[str, ...]]:
    """The names of the messages in each module."""
    return {module_name(key): tuple(_base_name(key) + side for side in SIDES) for key in ApiKey}


def module_name(api_key: ApiKey) -> str:
    """The module here that holds an API's messages."""
    return api_key.name.lower()


def _base_name(api_key: ApiKey) -> str:
    return "".join(word.capitalize() for word in api_key.name.split("_"))


_modules: dict[str, str] = {}


def _modules_by_message() -> dict[str, str]:
    if not _modules:
        for module, names in names_by_module().items():
            _modules.update((name, module) for name in names)
    return _modules


def _find(name: str) -> MessageType:
    found: MessageType = globals().get(name) or __getattr__(name)
    return found


def __getattr__(name: str) -> Any:
    module = _modules_by_message().get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = message
    return message


def __dir__() -> list[str]:
    return [*globals(), *message_names()]
