-- Counts and filters of the history must not read a million jobs.
CREATE INDEX jobs_unfinished_by_user ON jobs (uid, phase) WHERE ended IS NULL;
CREATE INDEX jobs_failed ON jobs (id, outcome, uid) WHERE outcome NOT IN ('"succeeded"', '"cancelled"');
CREATE INDEX jobs_cancelled ON jobs (id, uid) WHERE outcome = '"cancelled"';
CREATE INDEX jobs_of_arrays ON jobs (array, phase, outcome) WHERE array IS NOT NULL;

-- The numbers of the jobs that were submitted in each hour: a period becomes a range of numbers, also if the clock was set meanwhile.
CREATE TABLE submission_hours (
    hour INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL
) STRICT;
INSERT INTO submission_hours SELECT submitted / 3600000, min(id), max(id) FROM jobs GROUP BY 1;

-- The names of jobs, by every three letters in a row. The jobs of an array have the entry of its number.
CREATE VIRTUAL TABLE job_names USING fts5 (name, content = '', contentless_delete = 1, tokenize = 'trigram');
INSERT INTO job_names (rowid, name) SELECT id, name FROM jobs
    WHERE name IS NOT NULL AND (id = array OR array IS NULL OR array NOT IN (SELECT array FROM arrays)) ORDER BY id;
INSERT INTO job_names (rowid, name) SELECT array, min(name) FROM jobs
    WHERE array IN (SELECT array FROM arrays) AND array NOT IN (SELECT id FROM jobs) GROUP BY array HAVING min(name) IS NOT NULL;

-- What ended in each quarter of an hour. Periods are sums of these, and of what ended in the quarters that they begin and end in.
CREATE TABLE ended_jobs (
    uid INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    quarter INTEGER NOT NULL,
    jobs INTEGER NOT NULL,
    PRIMARY KEY (uid, outcome, quarter)
) STRICT, WITHOUT ROWID;
INSERT INTO ended_jobs SELECT uid, outcome, ended / 900000, count(*) FROM jobs WHERE outcome IS NOT NULL GROUP BY 1, 2, 3;
-- Attempts with measured energy, and the time that attempts had GPUs.
CREATE TABLE ended_attempts (
    uid INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    joules REAL NOT NULL,
    gpu_time INTEGER NOT NULL,
    PRIMARY KEY (uid, quarter)
) STRICT, WITHOUT ROWID;
INSERT INTO ended_attempts
    SELECT uid, attempts.ended / 900000, count(*), sum(joules), 0 FROM attempts JOIN jobs ON id = job
    WHERE attempts.ended IS NOT NULL AND joules IS NOT NULL GROUP BY 1, 2;
INSERT INTO ended_attempts
    SELECT uid, stays.ended / 900000, 0, 0, sum(stays.ended - launched) FROM stays JOIN jobs ON id = job WHERE stays.ended IS NOT NULL GROUP BY 1, 2
    ON CONFLICT DO UPDATE SET gpu_time = excluded.gpu_time;

-- Which attempts were on GPUs at a moment: those of up to an hour ended within an hour of it, those of up to a day within a day, and so on.
ALTER TABLE stays ADD COLUMN length INTEGER GENERATED ALWAYS AS (
    CASE WHEN ended - launched < 3600000 THEN 0 WHEN ended - launched < 86400000 THEN 1
    WHEN ended - launched < 691200000 THEN 2 WHEN ended - launched < 5529600000 THEN 3 ELSE 4 END
) VIRTUAL;
CREATE INDEX stays_by_length ON stays (length, ended, launched) WHERE ended IS NOT NULL;
CREATE INDEX stays_running ON stays (launched) WHERE ended IS NULL;

CREATE TRIGGER job_is_new AFTER INSERT ON jobs WHEN new.outcome IS NOT NULL BEGIN
    INSERT INTO ended_jobs VALUES (new.uid, new.outcome, new.ended / 900000, 1) ON CONFLICT DO UPDATE SET jobs = jobs + 1;
END;
CREATE TRIGGER job_ends AFTER UPDATE OF ended, outcome ON jobs WHEN (old.ended, old.outcome) IS NOT (new.ended, new.outcome) BEGIN
    UPDATE ended_jobs SET jobs = jobs - 1 WHERE quarter = old.ended / 900000 AND uid = old.uid AND outcome = old.outcome;
    DELETE FROM ended_jobs WHERE quarter = old.ended / 900000 AND uid = old.uid AND outcome = old.outcome AND jobs = 0;
    INSERT INTO ended_jobs SELECT new.uid, new.outcome, new.ended / 900000, 1 WHERE new.outcome IS NOT NULL
        ON CONFLICT DO UPDATE SET jobs = jobs + 1;
END;
CREATE TRIGGER attempt_ends AFTER UPDATE OF ended ON attempts WHEN old.ended IS NULL AND new.ended IS NOT NULL AND new.joules IS NOT NULL BEGIN
    INSERT INTO ended_attempts SELECT uid, new.ended / 900000, 1, new.joules, 0 FROM jobs WHERE id = new.job
        ON CONFLICT DO UPDATE SET attempts = attempts + 1, joules = joules + excluded.joules;
END;
CREATE TRIGGER stay_ends AFTER UPDATE OF ended ON stays WHEN old.ended IS NULL AND new.ended IS NOT NULL BEGIN
    INSERT INTO ended_attempts SELECT uid, new.ended / 900000, 0, 0, new.ended - new.launched FROM jobs WHERE id = new.job
        ON CONFLICT DO UPDATE SET gpu_time = gpu_time + excluded.gpu_time;
END;
CREATE TRIGGER job_goes BEFORE DELETE ON jobs WHEN old.outcome IS NOT NULL BEGIN
    UPDATE ended_jobs SET jobs = jobs - 1 WHERE quarter = old.ended / 900000 AND uid = old.uid AND outcome = old.outcome;
    DELETE FROM ended_jobs WHERE quarter = old.ended / 900000 AND uid = old.uid AND outcome = old.outcome AND jobs = 0;
    UPDATE ended_attempts SET (attempts, joules) = (
        SELECT ended_attempts.attempts - count(*), ended_attempts.joules - sum(joules) FROM attempts
        WHERE job = old.id AND joules IS NOT NULL AND ended / 900000 = quarter
    ) WHERE uid = old.uid AND quarter IN (SELECT ended / 900000 FROM attempts WHERE job = old.id AND joules IS NOT NULL);
    UPDATE ended_attempts SET gpu_time = gpu_time - (SELECT sum(ended - launched) FROM stays WHERE job = old.id AND ended / 900000 = quarter)
        WHERE uid = old.uid AND quarter IN (SELECT ended / 900000 FROM stays WHERE job = old.id);
    DELETE FROM ended_attempts WHERE uid = old.uid AND quarter IN (SELECT ended / 900000 FROM attempts WHERE job = old.id)
        AND attempts = 0 AND gpu_time = 0;
END;
