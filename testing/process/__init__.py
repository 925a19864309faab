"""A broker in a process of its own, and what is left when a run is killed."""
