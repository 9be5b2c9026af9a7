-- Why the manager drained a GPU; none: an operator did.
ALTER TABLE drained ADD COLUMN reason TEXT;
