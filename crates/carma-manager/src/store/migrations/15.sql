-- What the jobs of an array or sweep have in common. Such a job has a request and a standing of its own only if they differ from what follows from these.
-- The numbers of its jobs go from that of the array to the last.
CREATE TABLE arrays (
    array INTEGER PRIMARY KEY,
    last INTEGER NOT NULL,
    request TEXT NOT NULL,
    parameters TEXT NOT NULL,
    standing TEXT NOT NULL
) STRICT;
