"""From what a statement says to staged tuples: rows, the tuples they meet, what becomes of them, one write."""
