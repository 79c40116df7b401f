"""Maintenance transactions: statements become changed tuples, tuples become files, files become a version."""
