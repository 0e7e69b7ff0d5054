"""Pure readers: bytes and text in, frozen records out. No network, no clock, no environment.

Each module stands over a maintained library and keeps one standard; what a server sends wrong comes out as a value with
words (an issue, a rejection, None), never as an exception.
"""
