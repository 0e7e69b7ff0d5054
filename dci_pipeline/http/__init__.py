"""Getting bytes: address guard, direct fetcher, bodies, robots cache, politeness."""
