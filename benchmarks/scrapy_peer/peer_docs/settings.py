"""Scrapy's defaults but for what the comparison fixes: concurrency, robots, quiet, and for re-crawls its HTTP cache."""

import os

BOT_NAME = "peer_docs"
SPIDER_MODULES = ["peer_docs.spiders"]
USER_AGENT = "ScrapyPeer/1.0"
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS = 32
CONCURRENT_REQUESTS_PER_DOMAIN = 32
"""All ports are one domain to Scrapy."""
DOWNLOAD_DELAY = 0
AUTOTHROTTLE_ENABLED = False
COOKIES_ENABLED = False
TELNETCONSOLE_ENABLED = False
LOG_LEVEL = "WARNING"
DOWNLOAD_MAXSIZE = 256 * 1024 * 1024
ITEM_PIPELINES = {"peer_docs.pipelines.BodiesToFiles": 100}
PEER_OUTPUT = os.environ.get("PEER_OUTPUT", "out")
"""Folder of bodies and items."""
FEEDS = {f"{PEER_OUTPUT}/items.jsonl": {"format": "jsonlines", "overwrite": True, "item_export_kwargs": {}}}

if os.environ.get("PEER_CACHE"):
    HTTPCACHE_ENABLED = True
    HTTPCACHE_POLICY = "scrapy.extensions.httpcache.RFC2616Policy"
    HTTPCACHE_STORAGE = "scrapy.extensions.httpcache.FilesystemCacheStorage"
    HTTPCACHE_DIR = os.environ["PEER_CACHE"]
    # Each page is asked about anew: without it the cache would answer by itself for as long as it guesses.
    DEFAULT_REQUEST_HEADERS = {"Cache-Control": "max-age=0"}
