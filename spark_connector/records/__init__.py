"""Record batches, as files and brokers have them, to record batches of Arrow."""
