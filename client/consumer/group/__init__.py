"""Membership of a group, by both protocols, and the offsets that it commits."""
