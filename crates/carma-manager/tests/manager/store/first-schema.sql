PRAGMA application_id = 0x43524d41;
PRAGMA user_version = 1;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
INSERT INTO jobs VALUES(1,1,NULL,1000,100,'alice','done',1700000000000,0,1,0,NULL,NULL,1700000000000,1700000000000,'{"failed":{"code":3}}');
INSERT INTO jobs VALUES(2,2,'waits',1001,100,'bob','queued',1700000000000,0,1,0,NULL,NULL,1700000000000,NULL,NULL);
CREATE TABLE requests (
    job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    request TEXT NOT NULL
) STRICT;
INSERT INTO requests VALUES(1,'{"command":{"program":["python","train.py"]},"directory":"/home/alice","environment":{},"resources":{"gpus":1,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false}');
INSERT INTO requests VALUES(2,'{"name":"waits","command":{"program":["python","train.py"]},"directory":"/home/alice","environment":{},"resources":{"gpus":1,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false}');
CREATE TABLE standings (
    job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    standing TEXT NOT NULL
) STRICT;
INSERT INTO standings VALUES(1,'{"spec":{"id":1,"user":0,"group":0,"gpus":1,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":9.0,"outcome":{"failed":{"code":3}}},"submitted_at":0.0,"sequence":1,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null}');
INSERT INTO standings VALUES(2,'{"spec":{"id":2,"user":0,"group":0,"gpus":1,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"queued","since":0.0},"submitted_at":0.0,"sequence":2,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null}');
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
INSERT INTO attempts VALUES(1,1,'{"server":0,"devices":[{"device":"s0/gpu0","promised":4000,"limits":"streams"}]}',1700000000000,NULL,NULL,1700000000000,'{"code":0}','"succeeded"','[3900]',0.5,NULL,NULL,NULL,12.5);
INSERT INTO attempts VALUES(2,1,'{"server":0,"devices":[{"device":"s0/gpu0","promised":4000,"limits":"streams"}]}',1700000000000,4242,99,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    job INTEGER,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
INSERT INTO events VALUES(1,1700000000000,1,'accepted','{"what":"accepted"}');
INSERT INTO events VALUES(2,1700000000000,NULL,'tick','{"what":"tick"}');
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
INSERT INTO samples VALUES('s0/gpu0',10,60,100,0.59999999999999997779,NULL,NULL,NULL,61.5);
CREATE TABLE drained (
    device TEXT PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO drained VALUES('s0/gpu0',1700000000000);
CREATE TABLE machine_changes (
    change TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
INSERT INTO machine_changes VALUES('{"mps_daemon":{"gpu":"GPU-5fd15f35-e148-2992-4ecb-9825e534f253","pipes":"/run/pipes","logs":"/run/logs"}}');
CREATE TABLE numbers (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO numbers VALUES('clock',500000);
INSERT INTO numbers VALUES('next_job',3);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('events',2);
CREATE INDEX jobs_unfinished ON jobs (sequence) WHERE ended IS NULL;
CREATE INDEX jobs_by_end ON jobs (ended) WHERE ended IS NOT NULL;
CREATE INDEX jobs_by_user ON jobs (uid);
CREATE INDEX jobs_by_name ON jobs (name) WHERE name IS NOT NULL;
CREATE INDEX jobs_by_array ON jobs (array) WHERE array IS NOT NULL;
CREATE INDEX attempts_running ON attempts (job) WHERE ended IS NULL;
CREATE INDEX attempts_by_end ON attempts (ended) WHERE ended IS NOT NULL;
CREATE INDEX events_by_job ON events (job) WHERE job IS NOT NULL;
CREATE INDEX samples_by_minute ON samples (minute);
COMMIT;
