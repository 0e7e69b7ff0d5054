"""A Scrapy project that does what one connector does: sitemaps, robots, pages, bodies to files, text and metadata."""
