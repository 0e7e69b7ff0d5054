"""The page that an answer names as canonical, as a document to be known: in scope, of a group, another than itself."""

from dci_pipeline.http.messages import FetchReply
from dci_pipeline.model.ids import document_id
from dci_pipeline.model.records import DiscoveredUrl, Document
from dci_pipeline.model.states import Via
from dci_pipeline.parsing.urls import RejectedUrl, host_key
from dci_pipeline.parsing.variants import variant_key
from dci_pipeline.runners.context import RunContext
from dci_pipeline.stages.aliases import canonical_of


def named_by(ctx: RunContext, document: Document, own: str, reply: FetchReply) -> DiscoveredUrl | None:
    """The document behind the canonical link of an answer that stands at `own`; None where it names none but itself.

    A link from another page to the homepage is no word on that page: templates carry it on every page by mistake."""
    spec, found = ctx.spec, canonical_of(reply.headers, reply.body, reply.final_url)
    url = None if found is None else spec.canonical(found)
    if url is None or isinstance(url, RejectedUrl) or url == own or not spec.in_scope(url):
        return None
    if url == spec.canonical(spec.homepage) and variant_key(url) != variant_key(own):
        return None
    group = spec.group_for(url)
    if group is None:
        return None
    return DiscoveredUrl(
        connector=ctx.connector,
        document_id=document_id(url),
        url=url,
        host=host_key(url),
        via=Via.CANONICAL,
        origin=own,
        group=group.name,
        page_type=group.page_type,
        priority=group.priority,
        min_level=group.min_level,
        depth=document.depth,
    )
