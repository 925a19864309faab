"""What logs cost: appending, reading, looking up, recovering."""
