"""What goes wrong between bytes and messages, and whose fault it is."""


class ProtocolError(Exception):
    """Bytes that are no valid message; whoever sent them gets the connection closed."""


class EncodeError(ValueError):
    """A message holds what it cannot carry at the chosen version: our own fault."""


class UnsupportedVersionError(ValueError):
    """A message has no such version."""
