"""`matview demo retail`: Example 1.1 of paper C, the membership retailer with its six views."""
