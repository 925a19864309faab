"""The scenarios, one file for each family of APIs; a file registers what it holds."""
