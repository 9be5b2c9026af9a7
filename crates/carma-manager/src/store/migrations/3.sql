-- What is counted for good, each with how much of it there was: it outlives the jobs that it was counted of.
CREATE TABLE tallies (
    tally TEXT PRIMARY KEY,
    value REAL NOT NULL
-- What users want to be told of, each way once, and the last event that they were told of by it.
CREATE TABLE notifications (
    uid INTEGER NOT NULL,
    channel TEXT NOT NULL,
    occasions TEXT NOT NULL,
    place INTEGER NOT NULL,
    told INTEGER NOT NULL,
    PRIMARY KEY (uid, channel)
) STRICT, WITHOUT ROWID;
