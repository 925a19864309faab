"""The controller's requests to brokers: collected, encoded, sent in order."""
