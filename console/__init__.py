"""The web console: a cluster in a browser, to look at and, where that was allowed, to steer.

Pages are made here, on the server, and are HTML that reads well by itself; htmx, vendored, keeps
their live parts fresh, and nothing is fetched from anywhere else. A page is a module of `pages/`
and a template of `templates/`; `records/` reads and shows records; what every request passes
before it gets there (who may ask, from where, and what for) is `guard.py`, and nothing goes around
it.

The console is a client of the cluster like any other, of Apache Kafka's as well as of ours: it has
`odradek.client`, and a test broker's faults by its control channel, over HTTP. Nothing of a broker
may enter. Records and names are hostile input: templates escape, sizes are bounded.
"""
