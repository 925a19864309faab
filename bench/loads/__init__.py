"""What a broker can be loaded with, each load a function from a target to figures."""
