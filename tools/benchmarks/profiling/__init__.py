"""Parts of `tools/benchmarks/profiles.py`: loads, samples, stages, graphs, the page's tables."""
