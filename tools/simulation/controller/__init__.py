"""The controllers of a cluster under a seeded scheduler."""
