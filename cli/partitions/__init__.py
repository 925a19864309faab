"""`odradek partitions`: move partitions between brokers and directories, and elect leaders."""
