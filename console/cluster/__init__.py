"""What the cluster says, counted and put together as pages show it.

Nothing here knows of pages. Answers that are dear are kept for the next moments, and are bounded;
while nobody looks, nothing is asked.
"""
