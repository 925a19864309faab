"""Whether everything in a data folder is as it was written."""
