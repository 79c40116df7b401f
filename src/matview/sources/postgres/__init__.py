"""PostgreSQL: statement triggers over transition tables, sets of finished transactions, exported snapshots."""

from matview.sources.postgres.source import PostgresSource

__all__ = ["PostgresSource"]
