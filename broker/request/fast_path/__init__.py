"""Fast paths for requests that a connection repeats."""
