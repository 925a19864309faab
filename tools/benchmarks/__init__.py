"""What parts of odradek cost, beside their goals; odradek beside Apache Kafka; growth; profiles.

Each module with a `main` is run as `python -m odradek.tools.benchmarks.NAME`.
"""
