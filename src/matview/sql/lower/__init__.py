"""Spark SQL to algebra: names resolved, subqueries turned into joins, every choice that SQL leaves open made once.

A view must be a function of its tables. So what depends on more than them is refused, and where SQL allows several
answers (ties, `any_value`, the order of a collected list) the lowering settles on one that it gives every time.
"""

from matview.sql.lower.query import lower

__all__ = ["lower"]
