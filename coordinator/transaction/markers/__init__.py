"""The ends of transactions, brought to the leaders and written into their logs."""
