"""Pages that a person asks for by their URL: brought to canonical form, registered where they are not known yet."""

from collections.abc import Sequence

from dci_pipeline.connectors.hashes import spec_hash
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UsageError
from dci_pipeline.model.records import DiscoveredUrl
from dci_pipeline.model.states import Via
from dci_pipeline.parsing.urls import RejectedUrl
from dci_pipeline.runners.policies import in_group
from dci_pipeline.runners.stores import Stores
from dci_pipeline.runners.sync import sync_connector
from dci_pipeline.stores.pg import documents, read

ORIGIN = "command line"
"""Where such a URL was found."""


def canonical_urls(spec: ConnectorSpec, urls: Sequence[str]) -> tuple[str, ...]:
    """The URLs as the registry spells them. Raises UsageError for one that this connector may not or does not want."""
    return tuple(dict.fromkeys(_wanted(spec, url) for url in urls))


def _wanted(spec: ConnectorSpec, url: str) -> str:
    canonical = spec.canonical(url)
    if isinstance(canonical, RejectedUrl):
        raise UsageError(f"--url {url!r} cannot be crawled: {canonical.reason}")
    if not spec.in_scope(canonical):
        raise UsageError(f"{canonical} is out of scope: connector {spec.id} is for {', '.join(spec.hosts)}")
    if spec.group_for(canonical) is None:
        raise UsageError(f"{canonical} matches no group of connector {spec.id}, so it has no schedule; add a pattern")
    return canonical


def register_urls(stores: Stores, spec: ConnectorSpec, urls: Sequence[str], run_id: str) -> int:
    """Registers canonical URLs that are not known yet as seeds; gives how many were new."""
    if not urls:
        return 0
    sync_connector(stores, spec)
    now = stores.registry.now()
    with stores.registry.transaction() as conn:
        known = read.has_documents(conn, spec.id, urls)
        found = [_seed(spec, url) for url in urls if url not in known]
        return documents.register(conn, found, window=now.date(), run_id=run_id, yaml_hash=spec_hash(spec), now=now)


def _seed(spec: ConnectorSpec, url: str) -> DiscoveredUrl:
    group = spec.group_for(url)
    assert group is not None
    return in_group(spec, group, url, via=Via.SEED, origin=ORIGIN)
