"""What listeners need besides sockets; TLS and SASL are imported only where a listener has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.listeners import SASL_PROTOCOLS, TLS_PROTOCOLS

if TYPE_CHECKING:
    from ...config.dynamic.dynamic_config import DynamicConfig
    from ...runtime.clock import Clock
    from ...security.authenticator.sasl_listeners import SaslListeners
    from ...security.tls.listeners import TlsListeners


def tls_listeners(config: DynamicConfig) -> TlsListeners | None:
    """The listeners that speak TLS, which follow the settings from now on; None without any.

    Raises:
        ConfigError: a setting of TLS, or a file of keys or certificates, cannot be used.
    """
    if not any(listener.security_protocol in TLS_PROTOCOLS for listener in config.listeners):
        return None
    from ...security.tls.listeners import TlsListeners

    listeners = TlsListeners(config)
    config.add_part(listeners)
    return listeners


def sasl_listeners(config: DynamicConfig, clock: Clock) -> SaslListeners | None:
    """The listeners that speak SASL, which follow the settings from now on; None without any.

    Raises:
        ConfigError: a setting of SASL cannot be used.
    """
    if not any(listener.security_protocol in SASL_PROTOCOLS for listener in config.listeners):
        return None
    from ...security.authenticator.sasl_listeners import SaslListeners

    listeners = SaslListeners(config, clock)
    config.add_part(listeners)
    return listeners
