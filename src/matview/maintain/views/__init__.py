"""Views inside a maintenance transaction: made, followed by the paper's algorithms, compared, explained."""
