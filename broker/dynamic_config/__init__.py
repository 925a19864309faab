"""Settings changed while the broker runs: validated, stored, applied."""
