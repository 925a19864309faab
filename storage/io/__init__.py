"""The seam between logs and the file system: files, slices of them, how many are open."""
