"""SASL and TLS, from Kafka's settings."""
