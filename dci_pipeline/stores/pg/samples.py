"""Ten rows of what a run has written, chosen for what an analyst looks for first."""

from datetime import date
from typing import Any

from dci_pipeline.model.states import Stage
from dci_pipeline.stores.pg.bulk import Conn, query

SAMPLE_ROWS = 10

_SAMPLES: dict[Stage, str] = {
    Stage.DISCOVERED_URLS: """
        select d.url, f.via, f.group_name as "group", f.is_new as new, f.origin
        from discoveries f join documents d on d.connector = f.connector and d.id = f.document_id
        where f.run_id = %(r)s and f.connector = %(c)s and f.window_day = %(w)s
        order by f.is_new desc, d.priority desc, d.url limit %(n)s""",
    Stage.RAW_ARCHIVE: """
        select url, outcome, status, body_bytes as bytes, total_ms as ms, robots_rule as "allowed by", error
        from attempts where run_id = %(r)s and connector = %(c)s and window_day = %(w)s and kind = 'page'
        order by (outcome not in ('fetched', 'not_modified')) desc, started_at limit %(n)s""",
    Stage.EXTRACTIONS: """
        select d.url, e.page_type as "page type", e.title, jsonb_array_length(e.payload->'fields') as fields, e.problem
        from extractions e join documents d on d.connector = e.connector and d.id = e.document_id
        where e.run_id = %(r)s and e.connector = %(c)s and e.window_day = %(w)s
        order by (e.problem is not null) desc, d.priority desc, d.url limit %(n)s""",
    Stage.ENTITIES: """
        select v.event, e.type, e.name, v.delta::text as "what changed"
        from entity_events v join entities e on e.id = v.entity_id
        where v.run_id = %(r)s and v.connector = %(c)s and v.window_day = %(w)s
        order by v.event desc, e.type, e.name limit %(n)s""",
    Stage.PAGE_CHANGES: """
        select kind, significance, summary, url from page_changes
        where run_id = %(r)s and connector = %(c)s and window_day = %(w)s
        order by significance desc, url limit %(n)s""",
}


def sample(conn: Conn, stage: Stage, run_id: str, connector: str, window: date) -> list[dict[str, Any]]:
    """Up to ten rows of a stage's output in a window, by this run."""
    params = {"r": run_id, "c": connector, "w": window, "n": SAMPLE_ROWS}
    return conn.execute(query(_SAMPLES[stage]), params).fetchall()
