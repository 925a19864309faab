"""Replicas of partitions: appending, fetching, ISR, high watermark, delayed operations.

State machines that take `now_ms` and return what to do; they never see a socket, a
handler or a wire request.
"""
