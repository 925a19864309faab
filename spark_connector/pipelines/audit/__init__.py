"""What is wrong in topics: gaps, duplicates, disorder, skew."""
