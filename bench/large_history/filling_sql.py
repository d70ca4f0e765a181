"""SQL that writes what hubs have of many ended runs, from the numbers of the runs alone. So a part that is
written twice would be the same, and no row needs to be looked up.

One run in a hundred is a child of the one before it, one in fifty is archived, and the oldest ones of one in
two hundred are deleted. Experiments and people have very different numbers of runs."""

from __future__ import annotations

# Eight of ten runs are in the first workspace. `h`: a number by chance; `r`: the same from 0 to 1.
RUNS = """
CREATE TEMPORARY TABLE part ON COMMIT DROP AS
SELECT n, md5('run ' || n) AS id, w.id AS workspace_id, n AS number,
  e.id AS experiment_id, e.name AS experiment_name, u.id AS user_id, u.name AS user_name,
  CASE WHEN n > %(runs)s - 20 THEN 'Queued' WHEN n > %(runs)s - 40 THEN 'Running'
    WHEN h %% 100 < 85 THEN 'Completed' WHEN h %% 100 < 95 THEN 'Failed' ELSE 'Canceled' END AS state,
  now() - make_interval(secs => (%(runs)s - n) * 30) AS at, h, r
FROM (SELECT n, abs(hashint4(n)) AS h, abs(hashint4(n)) / 2147483648.0 AS r
      FROM generate_series(%(first)s, %(last)s) AS n) AS numbers
JOIN bench_workspace w ON w.place = greatest(0, n %% 10 - 7)
JOIN bench_experiment e ON e.workspace_id = w.id AND e.place = floor(power(r, 3) * %(experiments)s)
JOIN bench_person u
  ON u.place = (h / 100) %% 100 * ((h / 10000) %% 100) * %(people)s / 10000;
CREATE UNIQUE INDEX ON part (n);
INSERT INTO jobs_run (id, number, kind, display_name, spec, preview, state, reason, facts, attempt,
  created_at, started_at, finished_at, state_since, pinned, created_by_id, experiment_id, workspace_id,
  priority, archived_at, deleted_at, parent_id)
SELECT id, number, CASE WHEN n %% 10 = 3 THEN 'external' ELSE 'job' END,
  (ARRAY['train', 'finetune', 'sweep', 'evaluate'])[1 + h %% 4] || '-' ||
    (ARRAY['resnet', 'llama', 'vit', 'bert', 'unet', 'gpt', 'whisper'])[1 + h / 7 %% 7] || '-' ||
    substr(id, 1, 6),
  jsonb_build_object('version', 1, 'experiment', experiment_name, 'display_name', 'train ' || number,
    'script', 'train.py', 'source', jsonb_build_object('type', 'snapshot', 'id', repeat('0', 64)),
    'arguments', '["--epochs", "20"]'::jsonb, 'environment', '{"name": "system", "version": "1"}'::jsonb,
    'distribution', '{"type": "pytorch", "communication_backend": "nccl", "process_count": 2,
      "node_count": 1}'::jsonb,
    'resources', '{"cluster": "local", "node_count": null, "gpus_per_node": 2}'::jsonb, 'tags', '{}'::jsonb,
    'priority', 0),
  %(preview)s::jsonb, state, CASE state WHEN 'Completed' THEN 'completed'
    WHEN 'Failed' THEN 'exited' WHEN 'Canceled' THEN 'canceled' ELSE '' END,
  CASE state WHEN 'Failed' THEN '{"rank": 0, "code": 1, "node": "alpha"}' ELSE '{}' END::jsonb, 1, at,
  CASE WHEN state <> 'Queued' THEN at + interval '5 s' END,
  CASE WHEN state NOT IN ('Queued', 'Running') THEN at + make_interval(secs => 60 + h %% 3600) END,
  at, false, user_id, experiment_id, workspace_id, 0, CASE WHEN n %% 50 = 7 THEN at + interval '1 day' END,
  CASE WHEN n %% 200 = 11 AND n < %(runs)s / 2 THEN now() - interval '60 days' END,
  CASE WHEN n %% 100 = 40 THEN md5('run ' || (n - 3)) END
FROM part
"""
ATTEMPTS = """
INSERT INTO jobs_attempt (id, number, placement, plan, token_digest, warnings, failing, created_at, ended_at,
  run_id, served)
SELECT n, 1, %(placement)s::jsonb, %(preview)s::jsonb, '', '[]', false, at, at + interval '1 h', id, false
FROM part;
INSERT INTO jobs_attemptnode (id, node_rank, nonce, claimed_at, ports, phase, fact, settled_at, attempt_id,
  node_id, daemon, sends_unrecorded)
SELECT n, 0, id, at, '[]', 'ended', '{"phase": "ended"}', at + interval '1 h', n, node_id, '[]', false
FROM part, bench_node;
INSERT INTO jobs_member (rank, local_rank, role, log_name, gpus, decides, state, pid, exit_code, log_bytes,
  started_at, ended_at, attempt_id, node_id)
SELECT rank, rank, '', 'rank_' || rank || '.txt', '[]', true, 'Succeeded', 4711, 0, 8000, at,
  at + interval '1 h', n, node_id
FROM part, bench_node, generate_series(0, 1) AS rank;
INSERT INTO jobs_runevent (at, attempt, from_state, to_state, reason, message, actor, run_id)
SELECT at, 1, step[1], step[2], '', '', 'hub', id
FROM part, (VALUES (ARRAY['Queued', 'Running']), (ARRAY['Running', 'Completed'])) AS steps(step);
INSERT INTO tracking_usageentry (run_number, attempt, month, experiment_name, user_name, cluster_name, gpus,
  gpu_seconds, node_seconds, energy_j, is_final, run_id, workspace_id)
SELECT number, 1, date_trunc('month', at), experiment_name, user_name, 'local', 2, h %% 3600, h %% 1800,
  h %% 1000000, true, id, workspace_id
FROM part;
INSERT INTO workspaces_auditevent (at, actor, verb, subject, detail, workspace_id, position, seal)
SELECT at, user_name, 'run.submit', 'run ' || number, '{}', workspace_id, n, id || id
FROM part
"""
LOGGED = """
INSERT INTO tracking_metric (id, key, count, last_value, last_step, last_ms, min_value, max_value,
  experiment_id, run_id)
SELECT n::bigint * %(curves)s + place, name, %(points)s, value, %(points)s - 1,
  extract(epoch FROM at) * 1000, value / 2, value, experiment_id, id
FROM part, unnest(%(metrics)s::text[]) WITH ORDINALITY AS names(name, ordinal),
  LATERAL (SELECT ordinal - 1 AS place, abs(hashint4((n * 31 + ordinal)::int)) / 2147483648.0 AS value) AS x;
INSERT INTO tracking_metricblock (number, points, data, metric_id)
SELECT 0, %(points)s, data, n::bigint * %(curves)s + curve
FROM part CROSS JOIN generate_series(0, %(curves)s - 1) AS curve
JOIN bench_block ON bench_block.place = (n + curve) %% %(blocks)s;
INSERT INTO tracking_param (key, value, short, number, experiment_id, run_id)
SELECT key, value, value, amount, experiment_id, id
FROM part, LATERAL (VALUES
  ('lr', (0.0001 * (1 + h %% 50))::text, 0.0001 * (1 + h %% 50)),
  ('opt', (ARRAY['adam', 'sgd', 'adamw', 'lion'])[1 + h / 3 %% 4], NULL),
  ('note', 'run of the ' || n || 'th kind', NULL)) AS params(key, value, amount);
INSERT INTO jobs_runtag (key, value, short, experiment_id, run_id)
SELECT key, value, value, experiment_id, id
FROM part, LATERAL (VALUES ('team', CASE WHEN n %% 3 = 0 THEN 'speech' ELSE 'vision' END),
  ('week', (n %% 52)::text)) AS tags(key, value)
"""
ARTIFACTS = """
INSERT INTO jobs_artifact (attempt, path, size_bytes, sha256, created_at, run_id, node_rank)
SELECT 1, 'outputs/epoch-' || place || '/model.safetensors', 1000 + h %% 100000,
  encode(sha256(convert_to((CASE WHEN place = 0 THEN n %% 1000 ELSE n END) || ' ' || place, 'UTF8')), 'hex'),
  at, id, 0
FROM part, generate_series(0, %(files)s - 1) AS place
"""
PARTS = (RUNS, ATTEMPTS, LOGGED, ARTIFACTS)
# What other tables count on: the numbers that were written above.
SEQUENCES = (
    "jobs_attempt",
    "jobs_attemptnode",
    "tracking_metric",
)
