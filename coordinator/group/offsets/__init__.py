"""Committed offsets: written, expired, pending in transactions."""
