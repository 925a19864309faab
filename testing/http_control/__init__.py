"""The control channel's HTTP form, for other languages: `odradek serve --ephemeral --json`.

`operations` is the table of what can be requested, `operation` what an entry of it is, `endpoint`
speaks HTTP, and `serving` is the process: it starts a `Cluster` and prints where it is. All that an
operation does is done by the same classes that tests in Python use.
"""
