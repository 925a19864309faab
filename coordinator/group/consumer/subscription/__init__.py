"""What a group's members subscribe to: topics, regular expressions, hashes of them."""
