"""Text to statements and back. Pure: Spark, Delta and the catalog are not known here."""
