-- Rows of a made-up index for site_pages.py, one statement after another: %(documents)s pages of %(sources)s sources,
-- %(changes)s changes, and what hangs on them. Source 7, page 7 and run-big are the large ones of their kind.
insert into connectors (id, name, kind, owner, homepage, yaml_path, yaml_hash, health, last_run_at, synced_at)
select 'source_' || i, 'Source ' || i, 'operator', 'team:index', 'https://www.example.org/', '', '',
       (array['ok', 'ok', 'ok', 'degraded', 'failing'])[i %% 5 + 1], now(), now()
from generate_series(0, %(sources)s - 1) i;

insert into connector_state (connector, next_discovery_at) select id, now() from connectors;

insert into documents (connector, id, url, host, group_name, page_type, priority, state, next_check, checks, changes,
                       first_run, created_at, last_checked, last_fetched, failures)
select 'source_' || i %% %(sources)s, md5('d' || i), 'https://www.example.org/page-' || i, 'www.example.org:443',
       'page', 'page', 50, case when i %% 50 = 0 then 'failing' else 'active' end,
       now() + (i %% 1000 - 20) * interval '3 minutes', 10, 2, 'r', now(), now(), now(),
       case when i %% 50 = 0 then i %% 7 else 0 end
from generate_series(1, %(documents)s) i;

insert into attempts (id, window_day, connector, run_id, document_id, kind, url, host, outcome, status, body_bytes,
                      total_ms, robots_rule, started_at, finished_at)
select md5('a' || i), (now() at time zone 'UTC')::date, 'source_' || i %% %(sources)s, 'run-' || i %% 5000,
       md5('d' || i), 'page', 'https://www.example.org/page-' || i, 'www.example.org:443',
       case when i %% 100 = 0 then 'TIMEOUT' else 'fetched' end, 200, 40000, 120, 'no rule matches', now(), now()
from generate_series(1, %(documents)s / 4) i
union all
select md5('h' || i), (now() at time zone 'UTC')::date, 'source_7', 'run-big',
       md5('d' || 7 + %(sources)s * (i %% (%(documents)s / %(sources)s - 1))), 'page', 'https://www.example.org/page',
       'www.example.org:443', (array['not_modified', 'fetched', 'HTTP_5XX'])[i %% 3 + 1], 304, 0, 20,
       'no rule matches', now() - i * interval '1 second', now() - i * interval '1 second'
from generate_series(1, %(documents)s / 50) i
union all
select md5('l' || i), (now() at time zone 'UTC')::date, 'source_7', 'run-long', md5('d7'), 'page',
       'https://www.example.org/page-7', 'www.example.org:443', 'not_modified', 304, 0, 20, 'no rule matches',
       now() - i * interval '6 hours', now() - i * interval '6 hours'
from generate_series(1, %(documents)s / 500) i;

insert into captures (attempt_id, connector, document_id, window_day, run_id, url, captured_at, content_hash,
                      extracted_hash, content_type, final_url, body_bytes, verdict)
select id, connector, document_id, window_day, run_id, url, started_at, md5('h' || document_id),
       md5('h' || document_id), 'text/html', url, 40000, case when substr(id, 1, 2) = 'ff' then null else 'changed' end
from attempts where outcome = 'fetched' and run_id <> 'run-big'
union all
select 'b' || id, connector, document_id, window_day, run_id, url, started_at - interval '30 days',
       md5('g' || document_id), md5('g' || document_id), 'text/html', url, 40000, 'changed'
from attempts where outcome = 'fetched' and run_id <> 'run-big';

insert into versions (id, connector, document_id, first_capture, captured_at, window_day, content_hash,
                      last_confirmed_at)
select md5('v' || attempt_id), connector, document_id, attempt_id, captured_at, window_day, content_hash, captured_at
from captures;

insert into extractions (connector, document_id, content_hash, extractor_version, window_day, run_id, page_type,
                         fingerprint, text_hash, structured_hash, title, payload, created_at)
select connector, document_id, content_hash, '1', window_day, run_id, 'page', content_hash, content_hash,
       content_hash, 'A hall', jsonb_build_object('main_text', repeat('A hall on a hill. ', 20)), captured_at
from captures;

insert into page_changes (id, connector, window_day, document_id, url, run_id, detected_at, from_version, to_version,
                          kind, significance, summary, reasons, confirmation, fields)
select md5('c' || i), 'source_' || i %% %(sources)s,
       ((now() - (i %% 86400) * interval '1 minute') at time zone 'UTC')::date, md5('d' || i),
       'https://www.example.org/page-' || i, 'run-' || i %% 5000, now() - (i %% 86400) * interval '1 minute',
       md5('vb' || md5('a' || i)), md5('v' || md5('a' || i)),
       (array['minor', 'minor', 'meaningful', 'major', 'critical'])[i %% 5 + 1],
       (array[10, 20, 30, 60, 90])[i %% 5 + 1] + i %% 10,
       'power_mw ' || i %% 40 || ' to 24 MW; 1 line added, 1 removed', '["a number"]',
       case when i %% 1000 = 0 then 'unstable' when i %% 3 = 0 then 'pending' else 'confirmed' end,
       '[{"type": "facility", "entity": "Hall", "property": "power_mw", "before": "18", "after": "24"}]'
from generate_series(1, %(changes)s) i;

insert into entities (id, type, connector, document_id, item_key, name, properties, first_seen, last_seen, removed_at)
select md5('e' || i), (array['facility', 'operator', 'article'])[i %% 3 + 1], 'source_' || i %% %(sources)s,
       md5('d' || i), '', (array['Hall', 'Campus', 'Data Centre', 'Rechenzentrum', 'Site'])[i %% 5 + 1] || ' ' ||
       (array['Berlin', 'Oslo', 'Paris', 'Vilnius', 'Porto', 'Lyon', 'Gdansk'])[i %% 7 + 1] || ' ' || i,
       '{"power_mw": "24", "status": "open"}', now(), now(), case when i %% 50 = 0 then now() end
from generate_series(1, %(documents)s / 2) i;

insert into statements (id, entity_id, entity_type, property, value, connector, document_id, first_seen, last_seen)
select md5('s' || i || p), md5('e' || i), 'facility', p, '24', 'source_' || i %% %(sources)s, md5('d' || i), now(),
       now()
from generate_series(1, %(documents)s / 4) i, unnest(array['name', 'power_mw']) p
union all
select md5('t' || i), md5('e7'), 'facility', 'power_mw', i::text, 'source_7', md5('d7'),
       now() - i * interval '1 day', now() - i * interval '1 day'
from generate_series(1, 500) i;

insert into mentions (connector, document_id, content_hash, statement_id, raw, locator, confidence, extractor_version)
select connector, document_id, md5('h' || document_id), id, '24 MW', 'css:.power', 0.9, '1' from statements;

insert into entity_events (id, entity_id, connector, window_day, run_id, event, cause, at, delta)
select md5('n' || i), md5('e' || i %% (%(documents)s / 4)), 'source_' || i %% %(sources)s, now()::date, 'run-1',
       'updated', 'page', now() - i * interval '1 second', '{"power_mw": ["18", "24"]}'
from generate_series(1, %(documents)s / 4) i;

insert into connector_runs (run_id, connector, task, status, live, windows, started_at, finished_at, stats)
select 'run-' || i, 'source_' || i %% %(sources)s, 'crawl', case when i %% 40 = 0 then 'failed' else 'ok' end, true,
       array[current_date], now() - i * interval '1 minute', now() - i * interval '1 minute' + interval '40 seconds',
       '{"requests": 200, "bodyBytes": 1000000, "credits": 0, "fetched": 50, "notModified": 150}'::jsonb
from generate_series(1, %(sources)s * 100) i
union all
select name, 'source_7', 'full', 'partial', true, array[current_date], now() - interval '1 hour', now(),
       '{"requests": 20000}'::jsonb
from unnest(array['run-big', 'run-long']) name;

insert into reviews (id, kind, connector, host, rule, url, status, opened_at)
select md5('r' || i), 'blocked_source', 'source_' || i %% %(sources)s, 'www.example.org:443', 'Disallow: /' || i,
       'https://www.example.org/page-' || i, case when i %% 10 = 0 then 'open' else 'decided' end,
       now() - i * interval '1 hour'
from generate_series(1, %(documents)s / 500) i;

insert into system_alerts (id, kind, subject, severity, message, opened_at, resolved_at)
select md5('w' || i), 'run_failed', 'source_' || i %% %(sources)s, 'error', 'three runs in a row failed',
       now() - i * interval '1 hour', case when i %% 20 = 0 then null else now() end
from generate_series(1, %(documents)s / 200) i;

insert into audit_log (at, actor, action, subject)
select now() - i * interval '1 hour', 'anna', 'pause', 'source_' || i from generate_series(1, %(documents)s / 200) i;

insert into metric_totals (metric, connector, label, total)
select m, 'source_' || i, l, 1000 + i
from generate_series(0, %(sources)s - 1) i, (values
    ('crawl_requests', 'fetched'), ('crawl_requests', 'not_modified'), ('crawl_requests', 'TIMEOUT'),
    ('crawl_requests', 'ROBOTS'), ('crawl_requests', 'HTTP_5XX'), ('crawl_bytes', ''), ('crawl_milliseconds', ''),
    ('crawl_wait_milliseconds', ''), ('ingest_extractions', 'ok'), ('ingest_bodies', 'unchanged'),
    ('ingest_bodies', 'changed'), ('ingest_bodies', 'noise'), ('ingest_entity_events', 'created'),
    ('ingest_entity_events', 'updated'), ('ingest_changes', 'minor'), ('ingest_changes', 'major')) as v(m, l);

insert into budgets (scope, name, day, connector, cap, settled, wasted)
select 'connector', 'source_' || i, (now() at time zone 'UTC')::date, 'source_' || i, 100, 20, 1
from generate_series(0, %(sources)s / 5) i;

insert into hosts (host, next_slot_at, daily_budget)
select 'host-' || i || '.example.org:443', now(), 1000 from generate_series(1, %(sources)s) i;

insert into leases (connector, run_id, host, process, token, acquired_at, expires_at)
select 'source_' || i, 'run-' || i, 'here', 'p', i, now(), now() + interval '1 day' from generate_series(1, 5) i
