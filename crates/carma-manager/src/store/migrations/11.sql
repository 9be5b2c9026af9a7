-- The size of an attempt's logs, so that each user's share of the disk is known.
ALTER TABLE attempts ADD COLUMN log_bytes INTEGER NOT NULL DEFAULT 0;
