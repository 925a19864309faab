"""Is odradek like Apache Kafka? Scripted scenarios are run on both and their answers compared.

`make conformance` starts the two with like settings and plays every scenario to each. Answers are
compared field by field (`differences`) but for what is a broker's own, such as ids and times
(`normalisation` names each such field). A difference is a defect unless a row of
docs/differences.md explains it (`explanations`).

Only raw requests and answers are looked at here: clients and their libraries stay outside, and so
does everything that knows odradek from within.
"""
