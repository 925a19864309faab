"""What `benchmarks/profiles.py` is made of: loads, samples, stages, graphs, the page's tables."""
