"""Tables that stay at their sources: what is asked, in which state, and the answers."""
