"""Where things are kept: Postgres, the raw archive, analytics; each embedded or on a real server."""
