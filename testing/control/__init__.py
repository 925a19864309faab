"""The control channel: how a test's process speaks to the broker it started.

`server` runs in the broker's process, on the loopback interface and behind a token; `client` is
the test's side; `verbs` is what can be called over it; `target` is what those act on. The
product's broker knows nothing of it: only `python -m odradek.testing.process.broker --control`
opens one.
"""
