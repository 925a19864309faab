"""Who reads what in a consumer group: functions of members and topics, nothing else (KIP-848)."""
