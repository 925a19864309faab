"""Operations that wait: for replicas, for data, for time (Kafka's purgatories)."""
