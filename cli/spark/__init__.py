"""`odradek spark` and `odradek demo`."""
