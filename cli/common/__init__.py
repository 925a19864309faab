"""What the commands share: connections, settings, errors, tables."""
