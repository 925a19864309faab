"""`odradek serve`."""
