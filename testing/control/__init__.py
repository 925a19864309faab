"""The control channel: how a test's process speaks to the broker it started.

`server` runs in the broker's process, on the loopback interface and behind a token; `client` is
the test's side; `verbs` says which module does what is asked; `hooks` shows every request and
answer of the broker to those who want to see or to break them. The product's broker knows
nothing of it: only `python -m odradek.testing.process.broker --control` opens one.
"""
