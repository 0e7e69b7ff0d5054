"""The free rungs of one visit: what the direct rung gave, rendered by the browser where the page needs it.

The browser gets the document that the direct rung fetched, so climbing costs no second request for it; and an answer
"not modified" costs no browser. A document's validators speak for its rendered page only where the scripts brought no
data from elsewhere: else they are not kept, and the page is rendered at every check.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from dci_pipeline.http.browser import BrowserRung, BrowserUnavailable, Rendered, Visit
from dci_pipeline.http.direct import make_user_agent
from dci_pipeline.http.messages import FetchReply
from dci_pipeline.model.records import Document, Fetched
from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.parsing.html import RobotsFlags
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.page_loader import KeptScripts, PageLoader, Ways
from dci_pipeline.stages.fetch import Classified
from dci_pipeline.stages.rungs import BROWSER, Standing, learned_level, wants_browser
from dci_pipeline.stages.shell import MAX_SHELL_TEXT, Readable, read_shell
from dci_pipeline.stages.terms import terms_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Climbed:
    """The answer that counts, and how far up it came from."""

    reply: FetchReply
    level: int = 1
    learned_level: int | None = None
    """Where the next check begins; None: where this one did."""
    note: str | None = None
    """One line for the ledger: what the page went without, or why it stayed on its rung."""
    until: datetime | None = None
    """When to come again, of a page that is left due."""


class Ladder:
    """One a run of a connector."""

    def __init__(self, ctx: RunContext, browser: BrowserRung, ways: Ways) -> None:
        self._ctx, self._browser, self._ways = ctx, browser, ways
        self._scripts = KeptScripts()
        self._agent = product_token(ctx.settings.user_agent)

    def standing(self, document: Document) -> Standing:
        """What is known of a document before it is asked for."""
        is_page = document.kind is AttemptKind.PAGE
        return Standing(
            min_level=document.min_level,
            learned_level=document.learned_level,
            checks=document.schedule.checks,
            max_level=self._ctx.spec.fetch.max_level if is_page else 1,
        )

    async def climb(self, document: Document, reply: FetchReply) -> Climbed:
        """The page behind the direct rung's good answer, rendered where it is a script shell or its group wants it."""
        standing = self.standing(document)
        content_type = reply.headers.get("content-type")
        if standing.max_level < BROWSER or media_kind(content_type, reply.body) is not MediaKind.HTML:
            return Climbed(reply=reply)
        sent = read_shell(reply.body, content_type, url=reply.final_url, agent=self._agent)
        if not wants_browser(standing, sent.shell):
            return Climbed(reply=reply, learned_level=1)
        if terms_of(reply.headers, reply.body, reply.final_url, agent=self._agent).is_reserved:
            return Climbed(reply=reply)
        return await self._render(standing, sent, reply)

    async def show(self, reply: FetchReply) -> FetchReply:
        """A page as the browser shows it, whatever it is made of; with an outcome where it could not."""
        standing = Standing(min_level=BROWSER, learned_level=BROWSER, checks=0, max_level=BROWSER)
        sent = read_shell(reply.body, reply.headers.get("content-type"), url=reply.final_url, agent=self._agent)
        return (await self._render(standing, sent, reply)).reply

    async def _render(self, standing: Standing, sent: Readable, reply: FetchReply) -> Climbed:
        loader = PageLoader(self._ways, self._scripts, reply.final_url)
        try:
            rendered = await self._browser.render(self._visit(reply, loader))
        except BrowserUnavailable as exc:
            return _without_browser(standing, reply, str(exc))
        finally:
            loader.finish()
        if loader.held is not None and loader.held.refusal is not None:
            error = f"not rendered: {loader.held.refusal.error}"
            held = Classified(outcome=Outcome.SKIPPED, error=error)
            return Climbed(reply=_failed(rendered.reply, held), level=BROWSER, until=loader.held.until)
        if rendered.reply.outcome is not None:
            return Climbed(reply=rendered.reply, level=BROWSER)
        shown = read_shell(rendered.reply.body, "text/html; charset=utf-8", url=rendered.reply.final_url)
        if loader.failed is not None and shown.characters <= MAX_SHELL_TEXT:
            return Climbed(reply=_failed(rendered.reply, loader.failed), level=BROWSER)
        level = learned_level(standing, shell=sent.shell, has_more=shown.characters > sent.characters)
        note = loader.missing or (_foreign(rendered) if shown.characters <= MAX_SHELL_TEXT else None)
        answer = _with_flags(_with_own_validators(rendered), sent.robots)
        return Climbed(reply=answer, level=BROWSER, learned_level=level, note=note)

    def _visit(self, reply: FetchReply, loader: PageLoader) -> Visit:
        settings = self._ctx.settings
        return Visit(
            document=reply,
            loader=loader,
            in_scope=self._ctx.spec.in_scope,
            user_agent=make_user_agent(settings.user_agent, self._ways.contact or settings.contact),
            max_bytes=self._ctx.spec.fetch.max_bytes,
        )


def with_rung(fetched: Fetched, climbed: Climbed) -> Fetched:
    """The attempt's record with what the ladder has to say."""
    attempt = fetched.attempt
    return replace(
        fetched,
        attempt=replace(attempt, error=attempt.error or climbed.note),
        next_check=climbed.until or fetched.next_check,
        learned_level=climbed.learned_level,
    )


def _without_browser(standing: Standing, reply: FetchReply, why: str) -> Climbed:
    """A page that was never rendered stays what the server sent; one that was must not be taken for its shell."""
    if standing.learned_level >= BROWSER:
        failed = Classified(outcome=Outcome.UNKNOWN, error=f"the page needs its scripts run, but {why}")
        return Climbed(reply=_failed(reply, failed))
    return Climbed(reply=_without_validators(reply), note=f"stayed at level 1: {why}")


def _foreign(rendered: Rendered) -> str | None:
    """Why a page may have stayed empty."""
    hosts = ", ".join(rendered.foreign_hosts[:3])
    return f"it wants data of other sites ({hosts}); hosts in the YAML names those to load" if hosts else None


def _failed(reply: FetchReply, why: Classified) -> FetchReply:
    """An answer that is not to be taken for the page."""
    return replace(reply, outcome=why.outcome, error=why.error, body=b"")


def _with_flags(rendered: FetchReply, sent: RobotsFlags) -> FetchReply:
    """What the server's markup asks of crawlers holds, also where scripts took it out of the page."""
    names = [name for name in ("noindex", "nofollow", "noarchive") if getattr(sent, name)]
    if not names:
        return rendered
    tag = "\n".join(filter(None, (rendered.headers.get("x-robots-tag"), ", ".join(names))))
    return replace(rendered, headers={**rendered.headers, "x-robots-tag": tag})


def _with_own_validators(rendered: Rendered) -> FetchReply:
    return _without_validators(rendered.reply) if rendered.has_data else rendered.reply


def _without_validators(reply: FetchReply) -> FetchReply:
    """A page that is to be asked for whole next time."""
    kept = {name: value for name, value in reply.headers.items() if name not in ("etag", "last-modified")}
    return replace(reply, headers=kept)
