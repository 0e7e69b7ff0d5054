"""A stage joined to http and stores for one connector; yields records; knows no Dagster."""
