"""Running loads: processes, rounds, the strict loader."""
