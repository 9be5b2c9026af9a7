-- What `queue` and `history` list: small rows, so that a hundred thousand are read at once.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    sequence INTEGER NOT NULL,
    name TEXT,
    uid INTEGER NOT NULL,
    gid INTEGER NOT NULL,
    user TEXT NOT NULL,
    phase TEXT NOT NULL,
    since INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    gpus INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    array INTEGER,
    array_index INTEGER,
    submitted INTEGER NOT NULL,
    ended INTEGER,
    outcome TEXT
) STRICT;
CREATE INDEX jobs_unfinished ON jobs (sequence) WHERE ended IS NULL;
CREATE INDEX jobs_by_end ON jobs (ended) WHERE ended IS NOT NULL;
CREATE INDEX jobs_by_user ON jobs (uid);
CREATE INDEX jobs_by_name ON jobs (name) WHERE name IS NOT NULL;
CREATE INDEX jobs_by_array ON jobs (array) WHERE array IS NOT NULL;

-- The large parts of a job: what was asked for, which never changes, and what the core knows of it.
CREATE TABLE requests (
    job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    request TEXT NOT NULL
) STRICT;
CREATE TABLE standings (
    job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    standing TEXT NOT NULL
) STRICT;

CREATE TABLE attempts (
    job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    placement TEXT NOT NULL,
    launched INTEGER NOT NULL,
    supervisor_pid INTEGER,
    supervisor_started INTEGER,
    ended INTEGER,
    exit TEXT,
    verdict TEXT,
    peaks TEXT,
    smact REAL,
    smocc REAL,
    drama REAL,
    utilisation REAL,
    joules REAL,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempts_running ON attempts (job) WHERE ended IS NULL;
CREATE INDEX attempts_by_end ON attempts (ended) WHERE ended IS NOT NULL;

-- A number is never given twice, even when the last events were forgotten.
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    job INTEGER,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_job ON events (job) WHERE job IS NOT NULL;

-- Means over a minute.
CREATE TABLE samples (
    device TEXT NOT NULL,
    minute INTEGER NOT NULL,
    readings INTEGER NOT NULL,
    memory_used INTEGER NOT NULL,
    smact REAL,
    smocc REAL,
    drama REAL,
    utilisation REAL,
    power REAL,
    PRIMARY KEY (device, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX samples_by_minute ON samples (minute);

CREATE TABLE drained (
    device TEXT PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was changed on the machine and is to be put back, each as its own document.
CREATE TABLE machine_changes (
    change TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE numbers (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
