"""`dci new`: a connector for a site that nobody has described yet, from a first polite look at it."""

import re
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from dci_pipeline.cli.output import AsJson, notice, plural, print_json, print_table
from dci_pipeline.cli.run import dry_json, show_dry
from dci_pipeline.connectors.fetching import FetchSpec, LegalSpec
from dci_pipeline.connectors.kinds import ConnectorKind
from dci_pipeline.connectors.loader import SUFFIX, load_connector
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import SettingsError, UsageError, UserError
from dci_pipeline.model.states import Task
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.parsing.urls import RejectedUrl, canonical_url, host_of, registrable_domain
from dci_pipeline.runners import family
from dci_pipeline.runners.contact import is_loopback
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.dry import DryRun, dry_run
from dci_pipeline.runners.fixtures import FOLDER, record
from dci_pipeline.runners.probe import Kept, Probed, probe
from dci_pipeline.runners.stores import Stores, open_shadow
from dci_pipeline.settings import Settings, load_settings
from dci_pipeline.stages.extract import ExtractInput
from dci_pipeline.stages.proposal_yaml import proposal_yaml
from dci_pipeline.stages.propose import Proposal, propose
from dci_pipeline.stores.pg import read

app = typer.Typer(add_completion=False, rich_markup_mode=None)

LOOPBACK_RATE = 20.0
"""Requests a second to this machine itself: the polite rate would make a first try of the demo last minutes."""
DRY_PAGES = 3
"""Pages of the dry run: enough to see values of each kind, few enough to ask for at the polite rate."""


@app.command()
def new(
    url: Annotated[str, typer.Argument(metavar="URL", help="The site's homepage.")],
    connector: Annotated[
        str | None, typer.Option("--id", help="Of the connector, and its file's name; default is the site's.")
    ] = None,
    kind: Annotated[ConnectorKind, typer.Option(help="What the source is.")] = ConnectorKind.OPERATOR,
    pages: Annotated[int, typer.Option(min=1, max=100, help="Most pages to look at.")] = 12,
    dry: Annotated[
        bool, typer.Option("--dry-run/--write", help="Print the YAML instead of writing it; or write it, the default.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Make a connector for a site: look at it, propose a commented YAML, record a fixture, show a dry run.

    It asks for robots.txt, sitemaps, feeds and a few pages of each
    kind, as politely as any run. The connector is paused; a file that is there is never overwritten."""
    settings = load_settings()
    target = _target(settings, url, connector)
    if not dry:
        target.check_free()
    stores = open_shadow(settings, target.id)
    try:
        made = _make(stores, settings, target, kind, pages)
        fixture = None if dry else target.write(made, agent=product_token(settings.user_agent))
        done = dry_run(stores, settings, made.spec, RunOptions(task=Task.CRAWL, urls=_to_try(made), force=True))
    finally:
        stores.close()
    if as_json:
        print_json(_json(made, done, None if dry else target.path, fixture))
    else:
        _show(made, done, None if dry else target.path, fixture)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """What is to be made."""

    id: str
    homepage: str
    contact: str | None
    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / f"{self.id}{SUFFIX}"

    @property
    def rate(self) -> float | None:
        """None: the default."""
        return LOOPBACK_RATE if is_loopback(host_of(self.homepage)) else None

    def check_free(self) -> None:
        """Raises UserError where the file is there, or its folder is not."""
        if self.path.exists():
            raise UserError(f"{self.path} is there already and is not overwritten; choose another name with --id")
        if not self.folder.is_dir():
            raise UserError(f"there is no folder {self.folder}; make it, or set DCI_CONFIG_DIR to the connectors'")

    def write(self, made: "_Made", *, agent: str) -> Path | None:
        """Writes the YAML and a fixture, whose path it gives; None where no page may be one.

        Raises UserError where somebody made the file meanwhile, or it cannot be written."""
        try:
            with self.path.open("x", encoding="utf-8") as file:
                file.write(made.text)
        except OSError as exc:
            raise UserError(f"{self.path} could not be written: {exc.strerror or exc}") from exc
        return _record(self.folder, made, agent)

    @property
    def first_spec(self) -> ConnectorSpec:
        """By which the site is looked at: its homepage's host, with and without www."""
        host = urlsplit(self.homepage).netloc
        bare = host.removeprefix("www.")
        hosts = (host,) if registrable_domain(host_of(self.homepage)) != bare else (bare, f"www.{bare}")
        fetch = FetchSpec() if self.rate is None else FetchSpec(requests_per_second=self.rate)
        return ConnectorSpec(
            id=self.id, homepage=self.homepage, hosts=hosts, fetch=fetch, legal=LegalSpec(contact=self.contact)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A proposal that the loader takes."""

    probed: Probed
    proposal: Proposal
    text: str
    spec: ConnectorSpec
    attempts: Sequence[dict[str, Any]]


def _target(settings: Settings, url: str, connector: str | None) -> _Target:
    """Raises UsageError for words that do not fit, SettingsError where nobody answers for the requests."""
    homepage = canonical_url(url)
    if isinstance(homepage, RejectedUrl):
        raise UsageError(f"the address is {url!r}: {homepage.reason}, expected one such as https://www.example.org/")
    name = connector if connector is not None else _id_of(homepage)
    if not re.fullmatch(r"[a-z0-9_]{1,63}", name):
        raise UsageError(f"--id is {name!r}, expected up to 63 of a–z, 0–9 and _")
    if settings.contact is None and not is_loopback(host_of(homepage)):
        expected = "a mail address or URL of whoever answers for this crawler; nothing was asked for"
        raise SettingsError("DCI_CONTACT", "", expected)
    return _Target(id=name, homepage=homepage, contact=settings.contact, folder=settings.config_dir)


def _id_of(homepage: str) -> str:
    """The registered name of a site: `example` of www.example.org; of an address all of it."""
    host = host_of(homepage)
    domain = registrable_domain(host)
    word = domain.split(".")[0] if domain is not None and not is_loopback(host) else urlsplit(homepage).netloc
    return re.sub(r"[^a-z0-9]+", "_", word.lower()).strip("_")[:63]


def _make(stores: Stores, settings: Settings, target: _Target, kind: ConnectorKind, pages: int) -> _Made:
    run_id = str(uuid.uuid4())
    today = stores.registry.now().date()
    with stores.registry.transaction() as conn:
        read.forget_shadow_lease(conn)
    options = RunOptions(task=Task.DISCOVER)
    ctx = family.open_run(stores, settings, target.first_spec, run_id=run_id, windows=(today,), options=options)
    probed = probe(ctx, pages=pages, tell=notice)
    proposal = propose(
        probed.findings, connector=target.id, kind=kind, contact=target.contact, requests_per_second=target.rate
    )
    text = proposal_yaml(proposal)
    with stores.registry.transaction() as conn:
        attempts = list(read.attempts_of(conn, run_id, target.id))
    return _Made(probed=probed, proposal=proposal, text=text, spec=_checked(target.id, text), attempts=attempts)


def _checked(connector: str, text: str) -> ConnectorSpec:
    """The proposal as the loader reads it. Raises ConnectorFileError before anything is written."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{connector}{SUFFIX}"
        path.write_text(text, encoding="utf-8")
        return load_connector(path)


def _to_try(made: _Made) -> tuple[str, ...]:
    """Pages for the dry run, a group in turns, those of no group last; a page that was not looked at goes first."""
    looked_at = {sample.url for sample in made.probed.findings.samples}
    by_group: dict[str, list[str]] = {group.name: [] for group in made.proposal.groups}
    for url in sorted(made.probed.findings.urls, key=looked_at.__contains__):
        if (group := made.spec.group_for(url)) is not None:
            by_group[group.name].append(url)
    turns = [url for turn in range(DRY_PAGES) for urls in by_group.values() for url in urls[turn : turn + 1]]
    return tuple(turns[:DRY_PAGES]) or (made.probed.findings.homepage,)


def _record(folder: Path, made: _Made, agent: str) -> Path | None:
    """A sampled page as a fixture of the new connector; None where none may be kept or some are there already."""
    if (folder / FOLDER / made.spec.id).exists():
        return None
    kept = min(made.probed.kept, key=lambda page: (_rank(made.spec, page), len(page.body)), default=None)
    return record(folder, made.spec, _given(made.spec, kept, agent)) if kept is not None else None


def _rank(spec: ConnectorSpec, page: Kept) -> int:
    """0 for pages with fields of their own, 1 for others."""
    group = spec.group_for(page.url)
    return int(group is None or group.page_type not in spec.extract)


def _given(spec: ConnectorSpec, page: Kept, agent: str) -> ExtractInput:
    group = spec.group_for(page.url)
    page_type = group.page_type if group is not None else "page"
    return ExtractInput(
        document_id="fixture",
        content_hash="fixture",
        url=page.url,
        content_type=page.content_type,
        body=page.body,
        page_type=page_type,
        extract=spec.extract.get(page_type),
        change=spec.change,
        agent=agent,
        captured_on=page.captured_on,
    )


def _json(made: _Made, done: DryRun, path: Path | None, fixture: Path | None) -> dict[str, Any]:
    found = made.probed.findings
    return {
        "connector": made.spec.id,
        "path": path and str(path),
        "fixture": fixture and str(fixture),
        "homepage": found.homepage,
        "requests": found.requests,
        "urls": len(found.urls),
        "sitemaps": [sitemap.url for sitemap in found.sitemaps if not sitemap.answer],
        "feeds": [feed.url for feed in found.feeds],
        "groups": [
            {"name": g.name, "match": list(g.match), "page_type": g.page_type, "urls": g.urls, "evidence": g.evidence}
            for g in made.proposal.groups
        ],
        "boards": [{"system": board.system, "slug": board.slug} for board, _ in made.proposal.boards],
        "yaml": made.text,
        "attempts": made.attempts,
        "dry_run": dry_json(done),
    }


def _show(made: _Made, done: DryRun, path: Path | None, fixture: Path | None) -> None:
    if path is None:
        print(made.text)
    rows = [(g.name, " ".join(g.match), g.page_type, g.urls, g.evidence) for g in made.proposal.groups]
    print_table(("group", "~matches", "page type", ">URLs", "~seen"), rows)
    show_dry(done)
    if path is None:
        return
    asked = plural(made.probed.findings.requests, "request")
    print(f"wrote {path} after {asked}; the connector is paused")
    if fixture is not None:
        print(f"recorded {fixture}; the page is its publisher's, so delete it where it may not lie in your repository")
    else:
        print("no fixture: no sampled page was small enough and free to be kept, or there are fixtures already")
    print(f"next: edit the file, `dci validate {path}`, `dci run {made.spec.id} --dry-run --limit 5`,")
    print("then `automation: running`")
