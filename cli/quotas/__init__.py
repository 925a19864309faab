"""`odradek quotas`: how much users, clients and addresses may do."""
