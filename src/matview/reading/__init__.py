"""Reader sessions: one version for every query, whatever maintenance does meanwhile."""
