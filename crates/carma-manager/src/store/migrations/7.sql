-- What explains a job lives as long as the job: the event log is shortened by age.
ALTER TABLE attempts ADD COLUMN reason TEXT;
ALTER TABLE attempts ADD COLUMN blame TEXT;
UPDATE attempts SET (reason, blame) = (
    SELECT ended.body ->> '$.because', nullif(ended.body -> '$.whose', 'null')
    FROM (SELECT job, sequence, iif(json_valid(body), body, '{}') AS body FROM events WHERE kind = 'ended') AS ended
    WHERE ended.job = attempts.job AND ended.body ->> '$.attempt' = attempts.number ORDER BY ended.sequence DESC LIMIT 1
) WHERE ended IS NOT NULL;

-- The user who holds a job. A held job without one waits for its estimate.
ALTER TABLE jobs ADD COLUMN held_by TEXT;
UPDATE jobs SET held_by = user WHERE phase = 'held'
    AND (SELECT json_extract(iif(json_valid(request), request, '{}'), '$.schedule.hold') FROM requests WHERE job = id);
UPDATE jobs SET held_by = (
    SELECT iif(kind = 'held', json_extract(iif(json_valid(body), body, '{}'), '$.by'), NULL) FROM events
    WHERE job = id AND kind IN ('held', 'released') ORDER BY events.sequence DESC LIMIT 1
) WHERE phase = 'held' AND EXISTS (SELECT 1 FROM events WHERE job = id AND kind IN ('held', 'released'));

-- The user who cancelled a job, or the limit that it exceeds.
ALTER TABLE jobs ADD COLUMN cancelled TEXT;
UPDATE jobs SET cancelled = (
    SELECT iif(kind = 'cancelled', json_object('by', body ->> '$.by'), json_object('over_limit', body ->> '$.text'))
    FROM (SELECT job, sequence, kind, iif(json_valid(body), body, '{}') AS body FROM events WHERE kind IN ('cancelled', 'over_limit')) AS ordered
    WHERE ordered.job = id AND coalesce(body ->> '$.by', body ->> '$.text') IS NOT NULL ORDER BY ordered.sequence DESC LIMIT 1
);

-- The latest estimate of a job.
CREATE TABLE estimates (
    job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    source TEXT,
    estimate TEXT NOT NULL
) STRICT;
INSERT OR REPLACE INTO estimates
    SELECT job, body ->> '$.source', body FROM events
    WHERE kind = 'estimated' AND iif(json_valid(body), json_type(body), '') = 'object' AND job IN (SELECT id FROM jobs) ORDER BY sequence;
