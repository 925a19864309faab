"""Generators of pages and diagrams under `docs/`; run by `make docs`."""
