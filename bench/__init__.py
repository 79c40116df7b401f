"""Experiments: each prints a table, writes JSON and a picture into bench/results. Figures are ratios within one run."""
