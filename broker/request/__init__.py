"""A request on its way: from frame to handler, and what handlers share."""
