-- One row for each attempt on each GPU.
CREATE TABLE attempt_utilisation (
    job INTEGER NOT NULL,
    number INTEGER NOT NULL,
    device TEXT NOT NULL,
    ended INTEGER NOT NULL,
    utilisation TEXT NOT NULL,
    PRIMARY KEY (job, number, device),
    FOREIGN KEY (job, number) REFERENCES attempts (job, number) ON DELETE CASCADE
) STRICT;
CREATE INDEX attempt_utilisation_by_end ON attempt_utilisation (ended);
