"""What `tools/benchmarks/growth.py` measures: one noun per file, and how it is shown."""
