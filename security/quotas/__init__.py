"""Client quotas: whose they are, which of them applies, and how rates are measured against them.

State machines only: clock and metadata come from outside, and nothing here knows a connection.
"""
