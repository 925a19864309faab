"""Delegation tokens (KIP-48): what may be done with them, and how one logs in, sans-IO.

Nothing here reads the store or a socket; who may request tokens is the handlers' to check.
"""
