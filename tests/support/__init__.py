"""What several test suites share; `tests/conftest.py` makes it importable as `support`."""
