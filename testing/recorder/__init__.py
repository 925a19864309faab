"""A proxy that records what clients and brokers say to each other, and what is done with that.

    with odradek.testing.Recorder("localhost:9092", capture="run.odr") as recorder:
        producer = KafkaProducer(bootstrap_servers=recorder.bootstrap_servers)

Bytes go through `proxy` first; who looks at them does so after. `capture_file` and `pcapng` keep
them, `screen` shows them, `replay` says them again to another broker. Nothing here knows odradek's
broker from within: either side may be any client and any Kafka.
"""
