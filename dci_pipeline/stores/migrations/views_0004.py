"""Views that tell more since migration 0004: what each value counts and why. New columns stand last."""

CHANGE_FIELDS = """
create or replace view change_fields as
select p.id as change_id, p.connector, p.document_id, p.url, p.window_day, p.detected_at, p.kind, p.significance,
       p.confirmation, p.summary, f.value->>'type' as entity_type, f.value->>'entity' as entity,
       f.value->>'property' as property, f.value->>'before' as before, f.value->>'after' as after,
       f.value->>'unit' as unit, (f.value->>'significance')::int as field_significance, f.value->>'reason' as reason
from page_changes p
left join lateral jsonb_array_elements(p.fields) f on true"""

ENTITY_HISTORY = """
create or replace view entity_history as
select v.id as event_id, v.entity_id, e.type as entity_type, e.name, v.connector, e.document_id, v.at, v.event, v.cause,
       p.key as property, p.value->>0 as before, p.value->>1 as after, v.capture_id, v.run_id,
       (v.significance->>coalesce(p.key, ''))::int as significance
from entity_events v
join entities e on e.id = v.entity_id
left join lateral jsonb_each(v.delta) p on true"""

REPLACE = (CHANGE_FIELDS, ENTITY_HISTORY)
DROP = ("drop view entity_history", "drop view change_fields")
