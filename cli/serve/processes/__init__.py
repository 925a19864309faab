"""`odradek serve --processes`: each broker in a process of its own, and one that looks after them.

The looking after is `broker_processes`; `broker_child` is one broker over its lives, `restarts`
says when it is started again, `merged_log` and `merged_pages` make one log and one page of metrics
of all. A child is `odradek serve` with the settings it would be given by hand, so nothing here
knows how a broker works: nothing of one may be imported but the endpoint that serves pages.
"""
