"""The share coordinator: what became of the records that share groups read (KIP-932).

Each share partition, which is one topic partition as one group reads it, has a state: where it
starts, and which records after that are done with. `__share_group_state` keeps them: a snapshot,
then updates of it. `operations.py` is what others request of the coordinator, `share_state.py` one
state and how it is updated, `records.py` their form in the topic, and `coordinator.py` the verbs.
"""
