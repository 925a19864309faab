"""What is in the files of a data folder, entry by entry."""
