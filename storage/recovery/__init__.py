"""Opening logs, and making them whole after a crash (Kafka's LogLoader)."""
