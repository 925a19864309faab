"""What listeners need besides sockets; nothing of TLS is imported where none asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...config.dynamic.dynamic_config import DynamicConfig
    from ...security.tls.listeners import TlsListeners


def tls_listeners(config: DynamicConfig) -> TlsListeners | None:
    """The listeners that speak TLS, which follow the settings from now on; None without any.

    Raises:
        ConfigError: a setting of TLS, or a file of keys or certificates, cannot be used.
    """
    if not any(listener.security_protocol == "SSL" for listener in config.listeners):
        return None
    from ...security.tls.listeners import TlsListeners

    listeners = TlsListeners(config)
    config.add_part(listeners)
    return listeners
