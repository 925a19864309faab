"""Disks in memory that lose power, fill up and fail when a test says so."""
