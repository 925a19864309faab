"""The workshop: conformance, simulation, benchmarks, generators of pages. Not in the wheel."""
