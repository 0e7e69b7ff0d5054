"""Keeps an index of the real world true by reading public web pages: legally, incrementally, provably, cheaply.

The data flow of one connector, line by line the assets of its family; a partition is a UTC day:

1. discovered_urls ← (sitemaps, feeds, seeds): URLs in canonical form become documents, due at once
2. raw_archive ← discovered_urls: what is due, as robots, rate and budgets allow; bodies are kept byte for byte
3. extractions ← raw_archive: archived bytes become text and fields, each content once an extractor version
4. entities ← extractions: fields become typed statements, each with the page, version and place that prove it
5. page_changes ← entities: each version against the one before it; the verdict plans the page's next check

Only 1 and 2 touch the network, and only for today; 3 to 5 read the archive and can be repeated at any time.
"""
