"""Delegation tokens in the metadata store, where Kafka 3.9 keeps them, and on every broker.

A token is one node, changed by compare-and-set together with a notification (Kafka's
DelegationTokenManagerZk); whoever changes it knows it here before it answers.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final

from ...common.delegation_token import DelegationToken
from ...common.errors import ErrorCode, KafkaError
from ...metadata_store import znodes
from ...metadata_store.errors import BadVersion, MetadataStoreError, NoNode
from ...metadata_store.store import (
    Create,
    Delete,
    MetadataStore,
    Operation,
    SessionState,
    SetData,
    StoredNode,
    ensure_paths,
)
from ...runtime import waiting
from ...runtime.clock import Clock
from ...runtime.long_work import run_in_steps
from ...runtime.rng import random_uuid, uuid_to_text
from ...security.token.delegation_tokens import DelegationTokens
from .change_notifications import ChangeNotifications

logger = logging.getLogger(__name__)

WRITE_ATTEMPTS_MAX: Final = 20
"""How often a write begins anew because another broker was faster."""

NODE_BYTES_MAX: Final = 1_000_000
"""ZooKeeper takes no more than 1 MiB."""


class TokenManager:
    """One broker's hand on the tokens in the store.

    Args:
        store: an open session on the metadata.
        tokens: gets all there are, and every change.
        clock: for how long notifications stay.
        rng: makes the ids of tokens, which are no secrets.
        keep_running: runs an async function beside the requests, again should it fail.
    """

    def __init__(
        self,
        store: MetadataStore,
        tokens: DelegationTokens,
        clock: Clock,
        rng: random.Random,
        keep_running: Callable[[Callable[[], Awaitable[None]]], None],
    ) -> None:
        self.tokens = tokens
        self._store = store
        self._rng = rng
        self._keep_running = keep_running
        self._is_stopped = False
        # What was read before a change must not be taken up after it.
        self._changing = waiting.new_lock()
        self._notifications = ChangeNotifications(
            store, clock, keep_running, znodes.DELEGATION_TOKEN_CHANGES, self._changed
        )

    async def start(self) -> None:
        """Take up what the store holds, and follow its changes from now on.

        Raises:
            MetadataStoreError: the store does not answer.
        """
        await ensure_paths(self._store, [znodes.DELEGATION_TOKENS])
        await self._notifications.start()
        await self._load()
        self._store.add_session_listener(self._note_session)

    def stop(self) -> None:
        """Follow no more."""
        self._is_stopped = True
        self._notifications.stop()

    def _note_session(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED and not self._is_stopped:
            # Notifications may have come and gone while the store was out of reach.
            self._keep_running(self._load)

    async def _load(self) -> None:
        stored = set(await self._store.children(znodes.DELEGATION_TOKENS))
        known = {token.token_id for token in self.tokens.all}
        for token_id in stored | known:
            async with self._changing:
                await self._read(token_id)

    async def _changed(self, notification: bytes) -> None:
        async with self._changing:
            await self._read(notification.decode(errors="replace"))

    async def _read(self, token_id: str) -> tuple[StoredNode, DelegationToken] | None:
        """Take up what the store has of a token; None: it has none."""
        (node,) = await self._store.get_many([znodes.delegation_token_path(token_id)])
        try:
            token = None
            if node is not None:
                token = await run_in_steps(znodes.decode_delegation_token(node.data))
        except znodes.CorruptNode as error:
            logger.error(
                "delegation token %s cannot be read, so nobody has it: %s", token_id, error
            )
            token = None
        if node is None or token is None or token.token_id != token_id:
            self.tokens.remove(token_id)
            return None
        self.tokens.put(token)
        return node, token

    # -- changing -------------------------------------------------------------------------

    async def create(
        self, owner: str, requester: str, renewers: tuple[str, ...], max_lifetime_ms: int
    ) -> DelegationToken:
        """Make a token; see `DelegationTokens.create`.

        Raises:
            KafkaError: it has too many renewers.
            MetadataStoreError: the store refused.
        """
        token_id = uuid_to_text(random_uuid(self._rng))
        token = self.tokens.create(token_id, owner, requester, renewers, max_lifetime_ms)
        data = await run_in_steps(znodes.encode_delegation_token(token))
        if len(data) > NODE_BYTES_MAX:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The token has too many renewers.")
        async with self._changing:
            await self._write(Create(znodes.delegation_token_path(token_id), data), token_id)
            self.tokens.put(token)
        logger.info("Created a delegation token: %s for owner: %s", token_id, owner)
        return token

    async def alter(
        self, secret: bytes, change: Callable[[DelegationToken], DelegationToken | None]
    ) -> DelegationToken | None:
        """Change a token; None: it is removed.

        Args:
            secret: its HMAC.
            change: what becomes of it; raises KafkaError where nothing may.

        Raises:
            KafkaError: it may not be done, there is no such token, or others keep changing it.
            MetadataStoreError: the store refused.
        """
        token_id = self.tokens.token_id(secret)
        async with self._changing:
            return await self._alter(token_id, change)

    async def _alter(
        self, token_id: str, change: Callable[[DelegationToken], DelegationToken | None]
    ) -> DelegationToken | None:
        path = znodes.delegation_token_path(token_id)
        for _ in range(WRITE_ATTEMPTS_MAX):
            found = await self._read(token_id)
            if found is None:
                raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
            node, token = found
            altered = change(token)
            write: Operation = Delete(path, node.version)
            if altered is not None:
                data = await run_in_steps(znodes.encode_delegation_token(altered))
                write = SetData(path, data, node.version)
            try:
                await self._write(write, token_id)
            except (BadVersion, NoNode):
                continue
            if altered is None:
                self.tokens.remove(token_id)
            else:
                self.tokens.put(altered)
            return altered
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "Others kept changing the same token.")

    async def remove_expired(self) -> None:
        """Remove the tokens that have ended (`delegation.token.expiry.check.interval.ms`)."""
        for token in self.tokens.dead:
            try:
                async with self._changing:
                    await self._remove_expired(token)
            except (BadVersion, NoNode):
                continue
            except MetadataStoreError as error:
                logger.warning("expired delegation tokens cannot be removed now: %s", error)
                return

    async def _remove_expired(self, token: DelegationToken) -> None:
        found = await self._read(token.token_id)
        if found is None or found[1] != token:
            return  # another broker removed or renewed it
        path = znodes.delegation_token_path(token.token_id)
        await self._write(Delete(path, found[0].version), token.token_id)
        self.tokens.remove(token.token_id)
        logger.info(
            "Delegation token expired for token: %s for owner: %s", token.token_id, token.owner
        )

    async def _write(self, operation: Operation, token_id: str) -> None:
        """Write and notify in one step."""
        notification = Create(
            f"{znodes.DELEGATION_TOKEN_CHANGES}/{znodes.TOKEN_CHANGE_PREFIX}",
            token_id.encode(),
            sequential=True,
        )
        *_, created = await self._store.multi([operation, notification])
        assert isinstance(created, str)
        self._notifications.note_own(created)
