"""The server: connections, handlers, metadata, controller, coordinators, configuration.

This package joins the others and is the only one that runs trio tasks for a broker.
"""
