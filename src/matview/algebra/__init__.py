"""Relations as bags: what they are made of. Pure."""
