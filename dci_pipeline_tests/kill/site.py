"""A small site that is the same on every request, so that two runs over it can be compared row by row."""

from dci_pipeline_tests.acceptance.world import conditional, halls_yaml, sitemap_of
from dci_pipeline_tests.servers_http import Answer, Asked

FACILITIES = 24
YAML = halls_yaml(
    discovery='links: {{include: ["/notes/*"], depth: 1}}', others='note: {{match: ["/notes/*"], every: 7d}}'
)


def _facility(number: int, power: int) -> bytes:
    return (
        f"<html><head><title>Hall {number}</title></head><body><main><h1>Hall {number}</h1>"
        f"<p>Hall {number} stands in row {number % 5}.</p>"
        f'<p class="power">{power} MW</p><a href="/notes/{number}">notes</a></main></body></html>'
    ).encode()


def _note(number: int) -> bytes:
    return f"<html><head><title>Note {number}</title></head><body><p>Note on hall {number}.</p></body></html>".encode()


def pages(*, second_visit: bool = False) -> dict[str, bytes]:
    """Path → body; on the second visit three halls have more power and one is gone."""
    grown = {3, 7, 11} if second_visit else set()
    found = {f"/halls/{n}": _facility(n, 10 + n + (5 if n in grown else 0)) for n in range(FACILITIES)}
    if second_visit:
        del found["/halls/20"]
    return {**found, **{f"/notes/{n}": _note(n) for n in range(FACILITIES)}}


class HallSite:
    """Serves the halls; `turn` moves it on to the second visit."""

    def __init__(self) -> None:
        self.pages = pages()

    def turn(self) -> None:
        self.pages = pages(second_visit=True)

    def answer(self, asked: Asked) -> Answer:
        base = f"http://{asked.host}"
        if asked.target == "/robots.txt":
            text = f"User-agent: *\nDisallow: /private\nSitemap: {base}/sitemap.xml\n"
            return Answer(headers=(("Content-Type", "text/plain"),), body=text.encode())
        if asked.target == "/sitemap.xml":
            body = sitemap_of(f"{base}{path}" for path in sorted(self.pages) if path.startswith("/halls"))
            return Answer(headers=(("Content-Type", "application/xml"),), body=body)
        if asked.target not in self.pages:
            return Answer(status=410, body=b"gone")
        return conditional(asked, self.pages[asked.target])


def connector_yaml(base: str) -> str:
    """A connector that finds halls by sitemap and notes by link."""
    return YAML.format(base=base, hosts=[base.removeprefix("http://")])
