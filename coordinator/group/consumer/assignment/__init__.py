"""From members and topics to a target assignment, and towards it."""
