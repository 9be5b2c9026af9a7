-- Who was on which device, and when: what an attempt's placement says, so that a device's past is found without reading everybody's.
CREATE TABLE stays (
    job INTEGER NOT NULL,
    number INTEGER NOT NULL,
    device TEXT NOT NULL,
    promised INTEGER NOT NULL,
    launched INTEGER NOT NULL,
    ended INTEGER,
    PRIMARY KEY (job, number, device),
    FOREIGN KEY (job, number) REFERENCES attempts (job, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
-- A placement that cannot be read is one job's trouble and nobody else's.
INSERT INTO stays
    SELECT job, number, json_extract(placement, fullkey || '.device') AS device, ifnull(sum(json_extract(placement, fullkey || '.promised')), 0), launched, ended
    FROM attempts, json_each(iif(json_valid(placement), placement, '{}'), '$.devices')
    GROUP BY job, number, device HAVING typeof(device) = 'text';
CREATE INDEX stays_by_device ON stays (device, ended, launched);

-- Memory that an attempt had on a device, from each of these times on.
CREATE TABLE memory_steps (
    job INTEGER NOT NULL,
    number INTEGER NOT NULL,
    device TEXT NOT NULL,
    at INTEGER NOT NULL,
    memory INTEGER NOT NULL,
    PRIMARY KEY (job, number, device, at),
    FOREIGN KEY (job, number) REFERENCES attempts (job, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_steps_by_time ON memory_steps (at);
