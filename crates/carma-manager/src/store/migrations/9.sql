-- Jobs whose request and files may still hold the values of secrets. Those of finished jobs are hidden, one job after the other.
CREATE TABLE secrets (
    job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE
) STRICT;
INSERT INTO secrets SELECT id FROM jobs;
