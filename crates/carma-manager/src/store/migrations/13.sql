-- Servers of agents, the pools that request them from a batch system, and the requested pilots.
CREATE TABLE servers (
    id INTEGER PRIMARY KEY,
    server TEXT NOT NULL
) STRICT;
CREATE TABLE pools (
    name TEXT PRIMARY KEY,
    pool TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE pilots (
    name TEXT PRIMARY KEY,
    pilot TEXT NOT NULL
) STRICT, WITHOUT ROWID;
