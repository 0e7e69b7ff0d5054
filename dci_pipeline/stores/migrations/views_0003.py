"""SQL for people and their tools: views over the registry and its state at a time, made by migration 0003.

docs/sql.md says what the columns mean. Like a migration this file is never edited once released: a later migration
replaces a view. Functions are bound to their tables when they are made, whatever the caller's search path is.
"""

STATEMENTS_AS_OF = """
create function statements_as_of(t timestamptz) returns table (
    statement_id text, entity_id text, entity_type text, property text, value text, unit text, connector text,
    document_id text, first_seen timestamptz, last_seen timestamptz)
language sql stable begin atomic
    select s.id, s.entity_id, s.entity_type, s.property, s.value, s.unit, s.connector, s.document_id,
           min(c.captured_at), max(c.captured_at)
    from statements s
    left join documents d on d.connector = s.connector and d.id = s.document_id
    join mentions m on m.statement_id = s.id
    join captures c on c.connector = m.connector and c.document_id = m.document_id
         and c.extracted_hash = m.content_hash and c.resolved_version is not null
         and (c.verdict is null or c.verdict in ('unchanged', 'markup_only', 'noise', 'changed'))
    where c.captured_at <= t and d.alias_of is null
      and position('noindex' in coalesce(d.header_marks || ' ' || d.body_marks, '')) = 0
    group by s.id;
end"""
"""As `stores.pg.entities` counts first and last seen, by no body captured after the time."""

ENTITIES_AS_OF = """
create function entities_as_of(t timestamptz) returns table (
    entity_id text, type text, name text, connector text, document_id text, url text, properties jsonb,
    first_seen timestamptz, last_seen timestamptz)
language sql stable begin atomic
    with said as (select * from statements_as_of(t)),
    seen as (
        select s.entity_id, min(s.entity_type) as type, min(s.connector) as connector,
               min(s.document_id) as document_id, min(s.first_seen) as first_seen, max(s.last_seen) as last_seen,
               jsonb_object_agg(s.property, s.value order by s.value) filter (where s.last_seen = n.last_seen)
                   as properties
        from said s
        join (select said.entity_id, max(said.last_seen) as last_seen from said group by said.entity_id) n
             on n.entity_id = s.entity_id
        group by s.entity_id)
    select v.entity_id, v.type, coalesce(nullif(v.properties->>'name', ''), v.properties->>'title'), v.connector,
           v.document_id, d.url, v.properties, v.first_seen, v.last_seen
    from seen v
    join documents d on d.connector = v.connector and d.id = v.document_id
    where not exists (
        select 1 from entity_events r
        where r.entity_id = v.entity_id and r.event = 'removed' and r.at <= t and r.at > v.last_seen);
end"""

CURRENT_ENTITIES = """
create view current_entities as
select e.id as entity_id, e.type, e.name, e.connector, e.document_id, d.url, e.properties, e.first_seen, e.last_seen
from entities e join documents d on d.connector = e.connector and d.id = e.document_id
where e.removed_at is null"""

CURRENT_VALUES = """
create view current_values as
select s.id as statement_id, s.entity_id, e.type as entity_type, e.name, s.property, s.value, s.unit, s.connector,
       s.document_id, d.url, s.first_seen, s.last_seen
from statements s
join entities e on e.id = s.entity_id and e.removed_at is null
join documents d on d.connector = s.connector and d.id = s.document_id
where not s.retracted
  and s.last_seen = (select max(n.last_seen) from statements n where n.entity_id = s.entity_id and not n.retracted)"""

PAGE_HISTORY = """
create view page_history as
select v.connector, v.document_id, d.url,
       row_number() over (partition by v.connector, v.document_id order by v.captured_at, v.first_capture) as number,
       v.id as version_id, v.kind, v.captured_at, v.last_confirmed_at,
       lead(v.captured_at) over (partition by v.connector, v.document_id order by v.captured_at, v.first_capture)
           as replaced_at,
       v.content_hash, o.key as object_key, p.id as change_id, p.kind as change_kind, p.significance, p.confirmation,
       p.summary
from versions v
join documents d on d.connector = v.connector and d.id = v.document_id
left join objects o on o.hash = v.content_hash and o.deleted_at is null
left join page_changes p
    on p.connector = v.connector and p.document_id = v.document_id and p.to_version = v.id"""

CHANGE_FIELDS = """
create view change_fields as
select p.id as change_id, p.connector, p.document_id, p.url, p.window_day, p.detected_at, p.kind, p.significance,
       p.confirmation, p.summary, f.value->>'type' as entity_type, f.value->>'entity' as entity,
       f.value->>'property' as property, f.value->>'before' as before, f.value->>'after' as after
from page_changes p
left join lateral jsonb_array_elements(p.fields) f on true"""

ENTITY_HISTORY = """
create view entity_history as
select v.id as event_id, v.entity_id, e.type as entity_type, e.name, v.connector, e.document_id, v.at, v.event, v.cause,
       p.key as property, p.value->>0 as before, p.value->>1 as after, v.capture_id, v.run_id
from entity_events v
join entities e on e.id = v.entity_id
left join lateral jsonb_each(v.delta) p on true"""

CREATE = (
    STATEMENTS_AS_OF,
    ENTITIES_AS_OF,
    CURRENT_ENTITIES,
    CURRENT_VALUES,
    PAGE_HISTORY,
    CHANGE_FIELDS,
    ENTITY_HISTORY,
)
DROP = (
    "drop view entity_history",
    "drop view change_fields",
    "drop view page_history",
    "drop view current_values",
    "drop view current_entities",
    "drop function entities_as_of",
    "drop function statements_as_of",
)
