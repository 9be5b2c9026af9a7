-- Plain names.
ALTER TABLE standings RENAME TO job_states;
ALTER TABLE job_states RENAME COLUMN standing TO state;
ALTER TABLE arrays RENAME COLUMN standing TO state;
ALTER TABLE stays RENAME COLUMN promised TO reserved;
ALTER TABLE notifications RENAME COLUMN told TO notified;
UPDATE numbers SET name = 'notified' WHERE name = 'told';
UPDATE tallies SET tally = '{"requeued":"time_slice_over"}' WHERE tally = '{"requeued":"slot_over"}';
