"""How each operator changes when its inputs do: one operator, one file. Pure.

A change is a signed bag: the relation's columns and a weight. Rules use new states and changes only: E' is the new
state of E, dE its change, and E = E' - dE the state before.
"""

from matview.delta.derive import change

__all__ = ["change"]
