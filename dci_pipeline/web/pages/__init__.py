"""The site's pages, one module a family of addresses; each has a `router`."""
