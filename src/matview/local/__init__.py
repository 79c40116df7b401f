"""Few rows, computed here and now: where Python computes as Spark does, a Spark job for them would cost more."""
