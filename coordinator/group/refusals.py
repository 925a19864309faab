"""What members of groups that go by epochs are refused with, in Kafka's words where it has some."""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError


def invalid_request(text: str) -> KafkaError:
    """INVALID_REQUEST, with what is wrong."""
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


def group_not_found(text: str) -> KafkaError:
    """GROUP_ID_NOT_FOUND, with what there is instead."""
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)


def unknown_member(group_id: str, member_id: str) -> KafkaError:
    """UNKNOWN_MEMBER_ID: nobody of that id is in the group."""
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}."
    )


def fenced_epoch(group_type: str, epoch: int, known_epoch: int) -> KafkaError:
    """FENCED_MEMBER_EPOCH: a member is in another epoch than it says.

    Args:
        group_type: "consumer", "share" or "streams".
        epoch: what the member says.
        known_epoch: what it is.
    """
    size = "smaller" if epoch < known_epoch else "greater"
    return KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {group_type} group member has a {size} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({known_epoch}). The member must abandon all its partitions and "
        "rejoin.",
    )


def require_text(what: str, text: str | None) -> None:
    """Refuse a text that says nothing; None is said by leaving it out.

    Args:
        what: the field's name in the request.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    if text is not None and not text.strip():
        raise invalid_request(f"{what} can't be empty.")
