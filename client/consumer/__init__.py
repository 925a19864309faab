"""Fetching records, and finding the offsets to fetch from."""
