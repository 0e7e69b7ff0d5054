"""Documents that a rule blocks: found by the words of the rule, and opened again when it no longer holds."""

from collections.abc import Sequence

from dci_pipeline.model.records import Document
from dci_pipeline.stores.pg.bulk import Conn, query
from dci_pipeline.stores.pg.documents import as_document


def blocked_by(conn: Conn, connectors: Sequence[str], words: str) -> list[Document]:
    """Blocked pages of these connectors whose deciding rule has these words."""
    statement = """
        select * from documents where connector = any(%s) and state = 'blocked' and position(%s in blocked_by) > 0"""
    return [as_document(row) for row in conn.execute(query(statement), (list(connectors), words))]


def blocked_on(conn: Conn, host: str, words: str) -> list[Document]:
    """Blocked pages of a host, of all connectors, whose deciding rule has these words."""
    statement = "select * from documents where host = %s and state = 'blocked' and position(%s in blocked_by) > 0"
    return [as_document(row) for row in conn.execute(query(statement), (host, words))]


def one_blocked_url_a_host(conn: Conn, connector: str, words: str) -> list[str]:
    """A page of each host that has any whose deciding rule has these words, by host."""
    statement = """
        select min(url) as url from documents
        where connector = %s and state = 'blocked' and position(%s in blocked_by) > 0 group by host order by host"""
    return [row["url"] for row in conn.execute(query(statement), (connector, words))]


def reopen(conn: Conn, keys: Sequence[tuple[str, str]]) -> int:
    """Blocked documents (connector, id) become due, to be decided anew; gives how many."""
    statement = """
        update documents d set next_check = clock_timestamp() from unnest(%s::text[], %s::text[]) as k(connector, id)
        where d.connector = k.connector and d.id = k.id and d.state = 'blocked'"""
    return conn.execute(query(statement), ([k[0] for k in keys], [k[1] for k in keys])).rowcount
