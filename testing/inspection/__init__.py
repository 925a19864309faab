"""Looking into brokers from a test: topics, records, groups, transactions, requests.

`broker_inspection` and `cluster_inspection` are what a test calls; `broker_state`, `topic_admin`
and `requests` hold the verbs that do it in the broker's process.
"""
