"""Two answers to one request, compared field by field: for conformance and for replays."""
