"""FindCoordinator for transactional ids, as far as it goes without a transaction coordinator."""

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

TRANSACTION = 1


def test_coordinator_of_a_transactional_id_is_not_reported_to_who_may_not_use_it(handlers) -> None:
    handlers.denied.add(("DESCRIBE", "TRANSACTIONAL_ID", "payments"))
    request = messages.FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["payments"])
    (found,) = handlers.send(request, 6).response.coordinators
    assert found.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert found.node_id == -1
