import random
import uuid

import pytest

from odradek.runtime.rng import random_uuid, uuid_from_text, uuid_to_text


def test_random_uuids_are_version_four_and_replay_by_seed() -> None:
    raw = random_uuid(random.Random(1))
    assert uuid.UUID(bytes=raw).version == 4
    assert raw == random_uuid(random.Random(1))


def test_no_random_uuid_begins_with_a_dash() -> None:
    rng = random.Random(2)
    texts = [uuid_to_text(random_uuid(rng)) for _ in range(2000)]
    assert not any(text.startswith("-") for text in texts)
    assert len(set(texts)) == 2000


def test_text_form_round_trips_and_is_kafkas() -> None:
    # The topic id of `orders` as a Kafka 3.9 broker printed it.
    assert uuid_to_text(uuid_from_text("_F6LyTfnSiCoTSUdwD0U8g")) == "_F6LyTfnSiCoTSUdwD0U8g"


@pytest.mark.parametrize("text", ["", "abc", "_F6LyTfnSiCoTSUdwD0U8g_F6L", "!!!!"])
def test_what_is_not_a_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"UUID|padd|base64|character"):
        uuid_from_text(text)
