-- Energy is summed without reading what else there is of attempts.
CREATE INDEX attempts_energy ON attempts (ended, job, joules) WHERE joules IS NOT NULL;
