"""Real Chromium against hostile and common pages: what is rendered, what is never asked for, what a bad page costs."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from dci_pipeline.http.browser import BrowserUnavailable
from dci_pipeline.model.states import Outcome
from dci_pipeline.settings import Settings
from dci_pipeline_tests.browser.conftest import Reader, open_reader, wait_until
from dci_pipeline_tests.servers_http import Answer, Asked, Site, html, redirect, serve, silent

pytestmark = pytest.mark.asyncio(loop_scope="module")


def script(text: str) -> Answer:
    return Answer(headers=(("Content-Type", "text/javascript"),), body=text.encode())


def json(text: str, *headers: tuple[str, str]) -> Answer:
    return Answer(headers=(("Content-Type", "application/json"), *headers), body=text.encode())


def shell(code: str, head: str = "") -> Answer:
    return html(
        f'<!DOCTYPE html><html><head>{head}</head><body><div id="root"></div><script>{code}</script></body></html>'
    )


VICTIM = Path(__file__).with_name("browser_victim.py")
WRITE = "document.getElementById('root').innerHTML = "


@pytest.fixture
def site() -> Iterator[Site]:
    with serve({}) as served:
        yield served


async def test_a_script_shell_is_rendered_with_its_scripts_and_data(site: Site, reader: Reader) -> None:
    site.routes.update(
        {
            "/": html('<!DOCTYPE html><div id="root"></div><script src="/app.js"></script>'),
            "/app.js": script(f"fetch('/api/halls').then(r => r.json()).then(d => {WRITE} `<h1>${{d.name}}</h1>`)"),
            "/api/halls": json('{"name": "Hall Åland"}'),
        }
    )
    rendered = await reader.read(site.url("/"))
    assert "<h1>Hall Åland</h1>" in rendered.reply.body.decode()
    assert rendered.has_data
    assert site.paths() == ["/", "/app.js", "/api/halls"]
    assert rendered.reply.headers["content-type"] == "text/html; charset=utf-8"
    assert {asked.headers["user-agent"] for asked in site.asked[1:]} == {
        "DataCenterIndexBot/0.1 (+crawler@example.org)"
    }


async def test_a_page_of_scripts_alone_keeps_its_validators_meaningful(site: Site, reader: Reader) -> None:
    site.routes["/"] = shell(f"{WRITE} '<h1>Inline</h1>'")
    rendered = await reader.read(site.url("/"))
    assert "<h1>Inline</h1>" in rendered.reply.body.decode()
    assert not rendered.has_data


async def test_images_fonts_media_frames_and_analytics_are_not_asked_for(site: Site, reader: Reader) -> None:
    head = (
        "<style>@font-face { font-family: F; src: url(/font.woff2) } body { font-family: F; background: url(/bg.png) }"
        '</style><link rel="icon" href="/icon.ico"><link rel="stylesheet" href="/style.css">'
    )
    page = (
        f'<html><head>{head}</head><body><p>text</p><img src="/image.png"><video src="/film.mp4"></video>'
        '<iframe src="/frame"></iframe><script async src="https://www.google-analytics.com/analytics.js"></script>'
        "<script>new WebSocket(`ws://${location.host}/socket`); new EventSource('/events');"
        "navigator.sendBeacon('/beacon', 'x')</script></body></html>"
    )
    site.routes["/"] = html(page)
    assert "<p>text</p>" in await reader.text(site.url("/"))
    assert site.paths() == ["/"]
    assert reader.loader.admitted == []


async def test_a_stylesheet_that_a_script_waits_for_loads_empty(site: Site, reader: Reader) -> None:
    code = (
        "const l = document.createElement('link'); l.rel = 'stylesheet'; l.href = '/chunk.css';"
        f"l.onload = () => {{ {WRITE} '<h1>After the style</h1>' }}; document.head.append(l)"
    )
    site.routes["/"] = shell(code)
    assert "<h1>After the style</h1>" in await reader.text(site.url("/"))
    assert site.paths() == ["/"]


async def test_what_robots_refuses_is_not_requested_and_the_page_goes_on(site: Site, reader: Reader) -> None:
    reader.loader.closed_paths = ("/private/data",)
    site.routes["/"] = shell(f"fetch('/private/data').catch(() => {{ {WRITE} '<h1>Without</h1>' }})")
    assert "<h1>Without</h1>" in await reader.text(site.url("/"))
    assert site.paths() == ["/"]
    assert reader.loader.refused == [site.url("/private/data")]


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://[::1]:1/",
        "http://[::ffff:10.0.0.1]/",
        "http://0x0a000001/",
    ],
)
async def test_a_script_from_a_private_address_is_refused_by_the_guard(target: str, site: Site, reader: Reader) -> None:
    code = f"const s = document.createElement('script'); s.src = '{target}'; document.head.append(s);"
    site.routes["/"] = shell(code + f"s.onerror = () => {{ {WRITE} '<h1>No</h1>' }}")
    assert "<h1>No</h1>" in await reader.text(site.url("/"))
    assert reader.loader.admitted == []
    assert len(reader.loader.refused) == 1


async def test_data_that_redirects_to_a_private_address_does_not_arrive(site: Site, reader: Reader) -> None:
    site.routes["/"] = shell(f"fetch('/api').catch(() => {{ {WRITE} '<h1>Refused</h1>' }})")
    site.routes["/api"] = redirect("http://169.254.169.254/latest/meta-data/")
    assert "<h1>Refused</h1>" in await reader.text(site.url("/"))


async def test_a_move_to_a_private_address_leaves_the_page_as_it_was(site: Site, reader: Reader) -> None:
    site.routes["/"] = shell(f"{WRITE} '<h1>Stays</h1>'; location.href = 'http://169.254.169.254/'")
    assert "<h1>Stays</h1>" in await reader.text(site.url("/"))


async def test_a_move_within_the_site_gives_the_page_that_it_leads_to(site: Site, reader: Reader) -> None:
    site.routes["/"] = shell("location.replace('/real')")
    site.routes["/real"] = html("<h1>Real</h1>")
    rendered = await reader.read(site.url("/"))
    assert "<h1>Real</h1>" in rendered.reply.body.decode()
    assert rendered.reply.final_url == site.url("/real")


async def test_a_circle_of_moves_ends(site: Site, reader: Reader) -> None:
    site.routes["/"] = shell("location.replace('/other?' + Math.random())")
    site.routes["/other"] = shell("location.replace('/?' + Math.random())")
    await reader.read(site.url("/"), settle_s=4)
    assert len(site.asked) <= 4


async def test_only_gets_are_sent(site: Site, reader: Reader) -> None:
    code = f"fetch('/graphql', {{method: 'POST', body: 'q'}}).catch(() => {{ {WRITE} '<h1>No post</h1>' }})"
    site.routes["/"] = shell(code)
    assert "<h1>No post</h1>" in await reader.text(site.url("/"))
    assert site.paths() == ["/"]
    assert reader.loader.refused == [f"POST {site.url('/graphql')}"]


async def test_a_form_that_submits_itself_is_not_sent(site: Site, reader: Reader) -> None:
    site.routes["/"] = html(
        "<h1>Form</h1><form method='post' action='/buy'></form><script>document.forms[0].submit()</script>"
    )
    assert "<h1>Form</h1>" in await reader.text(site.url("/"))
    assert site.paths() == ["/"]


async def test_a_worker_asks_through_us_as_well(site: Site, reader: Reader) -> None:
    reader.loader.closed_paths = ("/closed",)
    site.routes["/"] = shell(f"new Worker('/worker.js').onmessage = e => {{ {WRITE} '<h1>' + e.data + '</h1>' }}")
    site.routes["/worker.js"] = script(
        "fetch('/closed').catch(() => fetch('/open').then(r => r.text()).then(t => postMessage(t)))"
    )
    site.routes["/open"] = Answer(headers=(("Content-Type", "text/plain"),), body=b"worked")
    assert "<h1>worked</h1>" in await reader.text(site.url("/"))
    assert site.paths() == ["/", "/worker.js", "/open"]


async def test_nothing_of_a_page_connects_past_us(site: Site, reader: Reader) -> None:
    with serve({}) as other, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        stun = f"stun:127.0.0.1:{udp.getsockname()[1]}"
        head = f'<link rel="preconnect" href="{other.url()}"><link rel="dns-prefetch" href="{other.url()}">'
        code = f"""
          new WebSocket('ws://127.0.0.1:{other.port}/');
          const peer = new RTCPeerConnection({{iceServers: [{{urls: '{stun}'}}]}});
          peer.createDataChannel('x'); peer.createOffer().then(offer => peer.setLocalDescription(offer));
          try {{ new WebTransport('https://127.0.0.1:{other.port}/').ready.catch(() => 0) }} catch (e) {{}}
          navigator.serviceWorker?.register('/worker.js').catch(() => 0);
          {WRITE} '<h1>Alone</h1>'"""
        site.routes["/"] = shell(code, head)
        assert "<h1>Alone</h1>" in await reader.text(site.url("/"))
        assert other.connections == 0
        with pytest.raises(BlockingIOError):
            udp.recv(1500)
    assert site.paths() == ["/"]


@pytest.mark.parametrize("header", ["text/html; charset=shift_jis", "text/html", "text/html; charset=SJIS"])
async def test_a_shift_jis_page_comes_as_utf_8(header: str, site: Site, reader: Reader) -> None:
    body = '<html><head><meta charset="Shift_JIS"></head><body><p>データセンター</p></body></html>'.encode("shift_jis")
    site.routes["/"] = Answer(headers=(("Content-Type", header),), body=body)
    rendered = await reader.read(site.url("/"))
    assert "<p>データセンター</p>" in rendered.reply.body.decode("utf-8")
    assert rendered.reply.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.timeout(60)
async def test_a_page_that_listens_to_a_stream_for_ever_returns(site: Site, reader: Reader) -> None:
    site.routes["/"] = shell(f"new EventSource('/stream'); {WRITE} '<h1>Live</h1>'")
    site.routes["/stream"] = silent()
    assert "<h1>Live</h1>" in await reader.text(site.url("/"))


@pytest.mark.timeout(60)
async def test_a_page_that_polls_for_ever_returns_within_the_cap(site: Site, reader: Reader) -> None:
    site.routes["/"] = shell(f"const poll = () => fetch('/poll').finally(poll); poll(); {WRITE} '<h1>Polls</h1>'")
    site.routes["/poll"] = silent()
    assert "<h1>Polls</h1>" in await reader.text(site.url("/"), settle_s=8)


async def test_a_page_that_never_stands_still_is_taken_when_its_time_is_over(site: Site, reader: Reader) -> None:
    site.routes["/"] = shell(f"{WRITE} '<h1>Ticks</h1>'; setInterval(() => document.body.append('x'), 20)")
    assert "<h1>Ticks</h1>" in await reader.text(site.url("/"), settle_s=3)


async def test_data_that_comes_late_is_waited_for(site: Site, reader: Reader) -> None:
    async def late(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(2.5)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nlate")

    site.routes["/"] = shell(f"fetch('/late').then(r => r.text()).then(t => {{ {WRITE} '<h1>' + t + '</h1>' }})")
    site.routes["/late"] = late
    assert "<h1>late</h1>" in await reader.text(site.url("/"))


async def test_data_that_asks_for_more_data_is_followed(site: Site, reader: Reader) -> None:
    async def late(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1.5)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nlate")

    then = f"setTimeout(() => fetch('/two').then(r => r.text()).then(t => {{ {WRITE} '<h1>' + t + '</h1>' }}), 300)"
    site.routes["/"] = shell(f"fetch('/one').then(() => {{ {then} }})")
    site.routes.update({"/one": late, "/two": late})
    assert "<h1>late</h1>" in await reader.text(site.url("/"))


async def test_the_text_of_components_is_part_of_the_page(site: Site, reader: Reader) -> None:
    code = """
      customElements.define('a-card', class extends HTMLElement {
        connectedCallback() {
          this.attachShadow({mode: 'open'}).innerHTML =
            '<style>p { color: red }</style><h2>Card</h2><slot></slot><a-badge></a-badge><p>after</p>';
        }
      });
      customElements.define('a-badge', class extends HTMLElement {
        connectedCallback() {
          if (!this.shadowRoot) this.attachShadow({mode: 'open'}).innerHTML = '<b>12 MW</b>';
        }
      });"""
    site.routes["/"] = html(f"<!DOCTYPE html><body><a-card><i>inside</i></a-card><script>{code}</script></body>")
    text = await reader.text(site.url("/"))
    card = "<a-card><h2>Card</h2><i>inside</i><a-badge><b>12 MW</b></a-badge><p>after</p></a-card>"
    assert card in text


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("while (true) alert('hello')", id="dialogs for ever"),
        pytest.param("for (;;) {}", id="a loop"),
    ],
)
async def test_scripts_that_never_give_way_cost_only_their_page(code: str, site: Site, reader: Reader) -> None:
    site.routes.update({"/bad": shell(f"setTimeout(() => {{ {code} }}, 100)"), "/good": html("<h1>Good</h1>")})
    bad, good = await asyncio.gather(reader.read(site.url("/bad")), reader.read(site.url("/good")))
    assert bad.reply.outcome is Outcome.TIMEOUT
    assert bad.reply.error == "the page's scripts kept the browser busy for over 5 s"
    assert "<h1>Good</h1>" in good.reply.body.decode()
    assert "<h1>Good</h1>" in await reader.text(site.url("/good"))


async def test_popups_alerts_and_downloads_do_not_hold_a_page(site: Site, reader: Reader) -> None:
    code = (
        "alert('a'); confirm('b'); prompt('c'); open('/popup'); setInterval(() => { alert('d'); open('/popup') }, 10);"
        "const a = document.createElement('a'); a.href = '/file.zip'; a.download = 'x'; a.target = '_blank'; a.click();"
        f"onbeforeunload = () => 'stay'; {WRITE} '<h1>Calm</h1>'"
    )
    site.routes["/"] = shell(code)
    assert "<h1>Calm</h1>" in await reader.text(site.url("/"))
    assert site.paths() == ["/"]


async def test_a_rendered_document_over_the_limit_is_too_large(site: Site, reader: Reader) -> None:
    site.routes["/"] = shell(f"{WRITE} 'x'.repeat(3000000)")
    rendered = await reader.read(site.url("/"), max_bytes=1_000_000)
    assert rendered.reply.outcome is Outcome.TOO_LARGE
    assert rendered.reply.body == b""


async def test_a_page_that_generates_requests_is_stopped(site: Site, reader: Reader) -> None:
    site.routes["/"] = shell("for (let i = 0; i < 1000; i++) fetch('/r?' + i).catch(() => 0)")
    site.routes["/r"] = json("{}")
    await reader.read(site.url("/"), settle_s=5)
    assert len(site.asked) <= 151


def processes_below(pid: int) -> list[psutil.Process]:
    return [p for p in psutil.Process(pid).children(recursive=True) if is_running(p)]


def kill_chromium(kind: str) -> None:
    """Kills the browser's own process, or all of its processes of a kind."""
    lines = {p: " ".join(p.cmdline()) for p in processes_below(os.getpid())}
    found = [p for p, line in lines.items() if "/chromium" in line.partition(" ")[0]]
    wanted = [p for p in found if (f"--type={kind}" if kind else "--type=") in lines[p]]
    for process in wanted if kind else [p for p in found if p not in wanted]:
        process.kill()


async def test_a_killed_tab_fails_its_page_and_the_next_is_fine(site: Site, browser_settings: Settings) -> None:
    async with open_reader(browser_settings) as reader:
        site.routes.update({"/dies": shell("fetch('/hold')"), "/hold": silent(), "/good": html("<h1>Good</h1>")})
        reading = asyncio.create_task(reader.read(site.url("/dies")))
        assert await wait_until(lambda: "/hold" in site.paths())
        kill_chromium("renderer")
        rendered = await reading
        assert rendered.reply.outcome is Outcome.UNKNOWN
        assert rendered.reply.error == "the browser could not show the page: its tab crashed"
        assert "<h1>Good</h1>" in await reader.text(site.url("/good"))


async def test_a_killed_browser_fails_its_page_and_another_is_started(site: Site, browser_settings: Settings) -> None:
    async with open_reader(browser_settings) as reader:
        site.routes.update({"/dies": shell("fetch('/hold')"), "/hold": silent(), "/good": html("<h1>Good</h1>")})
        reading = asyncio.create_task(reader.read(site.url("/dies")))
        assert await wait_until(lambda: "/hold" in site.paths())
        kill_chromium("")
        assert (await reading).reply.outcome is Outcome.UNKNOWN
        assert "<h1>Good</h1>" in await reader.text(site.url("/good"))


async def test_nothing_runs_once_the_rung_is_closed(site: Site, browser_settings: Settings) -> None:
    before = {p.pid for p in processes_below(os.getpid())}
    async with open_reader(browser_settings) as reader:
        site.routes["/"] = shell(f"{WRITE} '<h1>Once</h1>'")
        await reader.read(site.url("/"))
        started = [p for p in processes_below(os.getpid()) if p.pid not in before]
        assert started
    assert await wait_until(lambda: not [p for p in started if is_running(p)])


async def test_a_killed_parent_takes_its_browser_along(site: Site, browser_settings: Settings) -> None:
    site.routes.update({"/": shell("fetch('/hold')"), "/hold": silent()})
    victim = subprocess.Popen([sys.executable, str(VICTIM), str(browser_settings.home), site.url("/")])
    try:
        assert await wait_until(lambda: "/hold" in site.paths(), within_s=60)
        started = processes_below(victim.pid)
        assert [p for p in started if "/chromium" in p.name() or "chromium" in " ".join(p.cmdline())]
    finally:
        victim.kill()
        victim.wait()
    assert await wait_until(lambda: not [p for p in started if is_running(p)])


def is_running(process: psutil.Process) -> bool:
    """False as well for one that has ended and waits to be reaped."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


async def test_a_browser_that_does_not_start_is_given_up_after_three_times(site: Site, reader: Reader) -> None:
    site.routes["/"] = html("<h1>x</h1>")
    broken = reader.settings.model_copy(update={"chromium": Path("/bin/false")})
    async with open_reader(broken) as other:
        for _ in range(3):
            with pytest.raises(BrowserUnavailable, match=r"^Chromium did not start: \S"):
                await other.read(site.url("/"))
        with pytest.raises(BrowserUnavailable, match=r"^Chromium did not start 3 times in a row$"):
            await other.read(site.url("/"))
