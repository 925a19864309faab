"""What Prometheus scrapes: Kafka's metrics, under the names that the JMX exporter gives them.

The other packages only count, in plain numbers of their own; here these are read when somebody
asks. `metric_table` says what there is, `readers` take it from a running broker, `exposition`
writes it as text, `broker_pages` answers with it, `endpoint` serves that over HTTP. Nothing here
may be imported by a hot path, and prometheus-client is imported at the first scrape, not before.
"""
