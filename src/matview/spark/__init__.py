"""Spark itself: a Java for it, a session of it, its errors as ours."""
