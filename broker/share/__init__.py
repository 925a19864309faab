"""Share groups at the leaders of their partitions (KIP-932).

`share_partition.py` is the state machine of the records under way, whose states are the table in
`record_states.py`; both are plain: time comes as an argument. `share_partition_manager.py` holds
those led here, `delayed_share_fetch.py` lets fetches wait, `share_sessions.py` keeps what clients
need not say again. `persister.py` brings states to the share coordinators. Source: Kafka's package
kafka.server.share.
"""
