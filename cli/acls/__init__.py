"""`odradek acls`: what principals may do, and why."""
