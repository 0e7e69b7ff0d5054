"""What the comparisons with other programs share: the site, both sides' runs, and what processes cost."""
