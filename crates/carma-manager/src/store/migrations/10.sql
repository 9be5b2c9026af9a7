-- The answers to submissions with keys, for a while: a repeated submission gets the first answer and creates nothing.
CREATE TABLE submission_keys (
    uid INTEGER NOT NULL,
    key TEXT NOT NULL,
    at INTEGER NOT NULL,
    first INTEGER NOT NULL,
    jobs INTEGER NOT NULL,
    notes TEXT NOT NULL,
    PRIMARY KEY (uid, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX submission_keys_by_time ON submission_keys (uid, at);
