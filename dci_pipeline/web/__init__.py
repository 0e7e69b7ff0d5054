"""The operations site: what operators, analysts and editors look at every day, served by `dci web` and `dci up`.

Pages are rendered here and can be read without script; htmx only saves a reload. Everything that came from outside
(text of pages, URLs, errors) is escaped by the templates, and a page's own bytes are shown as source text, or in a
frame that runs no script and loads nothing.
"""
