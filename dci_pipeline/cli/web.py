"""`dci web` serves the operations site; `dci user` says who may log in to it."""

import sys
from typing import Annotated, Any, Literal

import typer

from dci_pipeline.cli.output import AsJson, notice, print_json, print_table
from dci_pipeline.cli.session import opened
from dci_pipeline.errors import UnknownThingError, UsageError, UserError
from dci_pipeline.settings import load_settings
from dci_pipeline.stores.pg import accounts
from dci_pipeline.stores.pg.bulk import Conn

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Action = Literal["add", "list", "remove", "passwd"]
RoleName = Literal["viewer", "editor", "admin"]
_NAME_CHARS = 64


@app.command()
def web(
    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need a login.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8300,
    as_json: AsJson = False,
) -> None:
    """Serve the operations site until Ctrl-C."""
    from dci_pipeline.web.serve import has_users, needs_login, serve

    settings = load_settings()
    with_login = needs_login(settings, host)
    if with_login and not has_users(settings):
        notice("nobody may log in yet; in another terminal: dci user add NAME --role admin")
    if as_json:
        print_json({"url": f"http://{host}:{port}", "login": with_login})
    else:
        print(
            f"operations site  http://{host}:{port}  (login {'on' if with_login else 'off'}; Ctrl-C stops it)",
            flush=True,
        )
    serve(settings, host=host, port=port)


@app.command()
def user(
    action: Annotated[Action, typer.Argument(metavar="add|list|remove|passwd", help="What to do.")],
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Whom; not with list.")] = None,
    role: Annotated[
        RoleName, typer.Option(help="With add: viewer reads, editor decides and closes, admin runs and pauses too.")
    ] = "viewer",
    as_json: AsJson = False,
) -> None:
    """Add, list, remove users of the operations site, or set a password.

    The password is asked for, or read from standard input where that is no terminal; never from the command line."""
    if (action == "list") != (name is None):
        raise UsageError("`dci user list` takes no NAME" if name else f"`dci user {action}` needs a NAME")
    with opened(load_settings()) as stores, stores.registry.transaction() as conn:
        if name is None:
            _show(accounts.users(conn), as_json=as_json)
            return
        _ACTIONS[action](conn, name, role)
        accounts.note_action(conn, actor="command line", action=f"user {action}", subject=name)
    if as_json:
        print_json({"action": action, "name": name, **({"role": role} if action == "add" else {})})
    else:
        print(_SAID[action].format(name=name, role=role))


_SAID = {
    "add": "{name} may log in as {role}",
    "remove": "{name} may not log in any more, and is logged out everywhere",
    "passwd": "{name} has a new password, and is logged out everywhere",
}


def _add(conn: Conn, name: str, role: str) -> None:
    if not 1 <= len(name) <= _NAME_CHARS or not name.isprintable() or name != name.strip() or ":" in name:
        raise UsageError(f"NAME is {name!r}, expected 1 to {_NAME_CHARS} printable characters without a colon")
    if accounts.user(conn, name) is not None or not accounts.add_user(conn, name, role, _new_hash()):
        raise UserError(f"there is a user {name} already; `dci user passwd {name}` sets the password")


def _remove(conn: Conn, name: str, _role: str) -> None:
    if not accounts.remove_user(conn, name):
        raise _unknown(name)


def _passwd(conn: Conn, name: str, _role: str) -> None:
    if accounts.user(conn, name) is None:
        raise _unknown(name)
    accounts.set_password(conn, name, _new_hash())


_ACTIONS = {"add": _add, "remove": _remove, "passwd": _passwd}


def _unknown(name: str) -> UnknownThingError:
    return UnknownThingError("user", name, "`dci user list` shows the known ones")


def _new_hash() -> str:
    from dci_pipeline.web.passwords import hash_password

    if sys.stdin.isatty():
        return hash_password(typer.prompt("password", hide_input=True, confirmation_prompt=True, err=True))
    return hash_password(sys.stdin.readline().rstrip("\r\n"))


def _show(users: list[dict[str, Any]], *, as_json: bool) -> None:
    names = ("name", "role", "created_at", "last_login_at", "sessions")
    if as_json:
        for row in users:
            print_json({key: row[key] for key in names})
        return
    if not users:
        print("nobody may log in; `dci user add NAME` lets somebody")
        return
    print_table(("name", "role", "since", "last login", ">open sessions"), [[u[key] for key in names] for u in users])
