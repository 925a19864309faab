"""`format("odradek")`: topics as tables and streams in Spark, with no JAR.

Spark's Python Data Source API on one side, confluent-kafka on the other, Arrow in between.
Options, columns and offsets are those of Spark's own source. Executors import this package,
confluent-kafka and pyarrow; nothing of a broker, and no pandas.
"""
