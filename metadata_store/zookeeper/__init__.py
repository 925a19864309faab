"""A metadata store in ZooKeeper, through kazoo."""
