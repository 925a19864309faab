"""What is wrong with the bytes of a SASL exchange."""

from __future__ import annotations


class SaslError(Exception):
    """A message that breaks its mechanism's rules, or proves nothing.

    Its text is for logs of this side: it may name what the other side must not hear of.
    """
