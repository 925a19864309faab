"""`format("odradek-log")`: the files of brokers' data folders as tables, with no broker.

The driver looks at names and indexes and cuts segments into slices; each task reads one, mapped
into memory, and turns whole runs of batches into Arrow columns at once. Executors import the
record format, numpy and pyarrow.
"""
