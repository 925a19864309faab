"""Reading records for people: where to begin, which of them to show, and what their bytes are.

Nothing here knows of pages. What is read is bounded in records, bytes and time, whatever a topic
holds; a search that ends at a bound says where it can go on.
"""
