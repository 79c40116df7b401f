"""Maintenance transactions: statements become changed tuples, tuples become files, files become a version.

rounds/       what sources have, in the paper's four steps; each round installs what it took over in one transaction
transaction   statements staged, then committed as one version: define, settle, commit
views/        views within it: made, followed by the paper's algorithms, compared, explained
remote/       tables that stay at their sources: what is asked, in which state, and the answers
change/       from what a statement says to staged tuples
upkeep/       leases kept alive, what crashed undone, overlays folded, garbage collected
"""
