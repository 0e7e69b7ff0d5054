"""Typer below 0.25 (what dg takes) imports names that click 8.5 calls deprecated; goes with the pin on typer."""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="'click", category=DeprecationWarning)
    import typer  # noqa: F401
