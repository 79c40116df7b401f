"""Few rows, computed here and now: where Arrow computes as Spark does, a Spark job for them would cost more."""
