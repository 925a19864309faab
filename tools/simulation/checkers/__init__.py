"""What must hold whatever happens, and what must hold once nothing happens any more.

A checker watches one thing: the metadata store, the logs, what clients were promised. It looks from
outside, all brokers at a time, through the product's own readers, and changes nothing.
"""
