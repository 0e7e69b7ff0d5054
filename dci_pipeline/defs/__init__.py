"""Dagster, and only here: assets, partitions, IO manager, sensors, checks, jobs, storage, launch."""
