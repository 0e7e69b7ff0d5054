"""`dci demo`: the main job on the bundled site. Crawl, change the site, crawl again, show exactly what changed."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from dci_pipeline.cli.changes import change_json, words
from dci_pipeline.cli.output import AsJson, complain, notice, plural, print_json, print_table
from dci_pipeline.cli.run import exit_code, launch
from dci_pipeline.cli.session import opened
from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.demo import DEFAULT_PORTS, Comparison, DemoSite, RunningDemo, compare, serve, serve_until_interrupted
from dci_pipeline.errors import UserError
from dci_pipeline.model.states import Task
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.drain import drain
from dci_pipeline.runners.lease import LeaseKeeper
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import REPO_ROOT, Settings, load_settings
from dci_pipeline.stores.pg import read
from dci_pipeline.stores.pg.forget import Target
from dci_pipeline.upkeep.forget import Kept, forget

app = typer.Typer(add_completion=False, rich_markup_mode=None)

CONNECTOR = "demo"
BETWEEN = timedelta(days=40)
"""Between the two visits by the runs' clock: longer than any page of the demo may wait, so nothing is forced. The first
visit lies back and the second is now, so that later runs go on from it."""
LOOPBACK = "127.0.0.0/8"


@app.command()
def demo(
    keep: Annotated[bool, typer.Option("--serve", help="Only serve the demo site, until Ctrl-C.")] = False,
    port: Annotated[
        int | None, typer.Option(min=1, max=65533, help="First of the site's three ports; default 8391, or free ones.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Crawl the bundled site, change it, crawl again, show the changes."""
    ports = DEFAULT_PORTS if port is None else (port, port + 1, port + 2)
    if keep:
        serve_until_interrupted(DemoSite(), ports, lambda running: _announce(running, as_json=as_json))
        return 0
    with _served(ports, may_move=port is None) as running, _settings_for(running) as settings:
        return _show(_crawl_twice(running.site, settings), as_json=as_json)


def _announce(running: RunningDemo, *, as_json: bool) -> None:
    if as_json:
        print_json({"base_urls": running.base_urls})
        return
    print(f"the demo site is at {', '.join(running.base_urls)}")
    print(f"crawl it:   DCI_ALLOW_PRIVATE={LOOPBACK} dci run demo")
    print(f"change it:  curl -X POST {running.base_urls[0]}/__change", flush=True)


@contextmanager
def _served(ports: Sequence[int], *, may_move: bool) -> Iterator[RunningDemo]:
    """The site on these ports, or on free ones where they are taken and nobody asked for them."""
    site = DemoSite()
    try:
        serving = serve(site, ports)
        running = serving.__enter__()
    except UserError:
        if not may_move:
            raise
        serving = serve(site, (0, 0, 0))
        running = serving.__enter__()
    try:
        yield running
    finally:
        serving.__exit__(None, None, None)


@contextmanager
def _settings_for(running: RunningDemo) -> Iterator[Settings]:
    """The installation's settings with loopback opened, and the demo's YAML alone, at the addresses of the site."""
    settings = load_settings()
    text = running.site.rebase((REPO_ROOT / "config" / "connectors" / f"{CONNECTOR}.yaml").read_text())
    with tempfile.TemporaryDirectory(prefix="dci-demo-") as folder:
        (Path(folder) / f"{CONNECTOR}.yaml").write_text(text)
        private = ",".join(filter(None, (settings.allow_private, LOOPBACK)))
        yield settings.model_copy(
            update={"allow_private": private, "config_dir": Path(folder), "connectors": CONNECTOR}
        )


def _crawl_twice(site: DemoSite, settings: Settings) -> dict[str, Any]:
    """What --json prints: both visits' stats, the changes, what was planted, and how the two differ."""
    spec = load_connector(settings.config_dir / f"{CONNECTOR}.yaml")
    with opened(settings) as stores:
        _forget(stores)
        first = _visit(stores, settings, spec, "first visit", -BETWEEN)
        planted = site.change()
        second = _visit(stores, settings, spec, "second visit, 40 days later", timedelta(0))
        with stores.registry.transaction() as conn:
            changes = read.changes(conn, read.ChangeFilter(connector=CONNECTOR))
    found = compare(planted, changes)
    return {
        "visits": [first, second],
        "changes": [{**change_json(change), "object_key": change["object_key"]} for change in changes],
        "planted": [asdict(entry) for entry in planted],
        **_differences(found),
    }


def _differences(found: Comparison) -> dict[str, Any]:
    return {"missed": [asdict(e) for e in found.missed], "phantom": [asdict(e) for e in found.phantom]}


def _forget(stores: Stores) -> None:
    """Each demo starts afresh. Raises LeaseHeld while another one is going on."""
    lease = LeaseKeeper(stores.registry, CONNECTOR, "dci-demo")
    lease.acquire()
    try:
        kept = Kept(registry=stores.registry, archive=stores.archive, analytics=stores.analytics)
        forget(kept, Target(kind="connector", name=CONNECTOR))
    finally:
        lease.release()
    drain(stores)


def _visit(stores: Stores, settings: Settings, spec: ConnectorSpec, label: str, offset: timedelta) -> dict[str, Any]:
    options = RunOptions(task=Task.FULL, clock_offset=offset)
    result = launch(settings, stores, spec, options, None, label=label)
    if exit_code(result):
        raise UserError(f"the demo's {label} {result['status']}: {result['error']}")
    notice(
        f"{label}: {plural(result['fetched'], 'page')} fetched, {result['notModified']} not modified, "
        f"{result['changed']} changed, in {result['seconds']:.1f} s"
    )
    return result


def _show(result: dict[str, Any], *, as_json: bool) -> int:
    is_exact = not result["missed"] and not result["phantom"]
    if as_json:
        print_json(result)
    else:
        _show_changes(result["changes"])
        _show_differences(result)
    return 0 if is_exact else 1


def _show_changes(changes: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        (
            f"{change['kind']} {change['significance']}",
            f"{_short_url(change['url'])}\n{short_key(change['object_key'])}",
            words(change),
        )
        for change in sorted(changes, key=lambda change: (-change["significance"], change["url"]))
    ]
    print_table(("significance", "page, and its archived bytes", "~what changed: before → after"), rows)
    print(f"the bytes are archived as raw/{CONNECTOR}/<document>/<content>.html.zst, hashes cut here to eight digits;")
    print("`dci inspect <page>` follows each value to them, `dci inspect <page> --body` prints them")


def _short_url(url: str) -> str:
    parts = urlsplit(url)
    return f":{parts.port}{parts.path}"


def short_key(key: str | None) -> str:
    """Document and content of an archive key, each cut to eight digits, to fit a table."""
    if key is None:
        return "no bytes"
    _, _, document, name = key.split("/")
    return f"  {document[:8]}…/{name[:8]}…"


def _show_differences(result: Mapping[str, Any]) -> None:
    for name, entries in (("missed", result["missed"]), ("phantom", result["phantom"])):
        for entry in entries:
            what = f"{entry['entity']}, {entry['property']}: {entry['before']} → {entry['after']}"
            complain(f"{name}: {entry['page']} {what if entry['property'] else 'text'}")
    seconds = sum(visit["seconds"] for visit in result["visits"])
    print(
        f"{len(result['planted'])} differences planted, {len(result['missed'])} missed, "
        f"{len(result['phantom'])} phantom; {plural(len(result['changes']), 'page change')}, "
        f"two visits in {seconds:.1f} s"
    )
