"""A transactional id: its states, its transitions, its records."""
