"""Looking after an installation: what is broken and what to do about it."""
