"""Keeping clients to their quotas: those in force on this broker, and the stage of requests.

What is measured, and which quota is whose, is in `security/quotas/`.
"""
