-- What is counted for good, each with how much of it there was: it outlives the jobs that it was counted of.
CREATE TABLE tallies (
    tally TEXT PRIMARY KEY,
    value REAL NOT NULL
) STRICT, WITHOUT ROWID;
