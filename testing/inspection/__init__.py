"""Looking into a broker without a client: its topics, groups, transactions, producers, requests.

`inspected` is what a test calls. Everything is read in the broker's process, over the control
channel, and changes nothing there but what `reset` and `restore` say.
"""
