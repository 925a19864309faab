"""The other brokers: connections to them, forwarding, ISR changes, controlled shutdown."""
