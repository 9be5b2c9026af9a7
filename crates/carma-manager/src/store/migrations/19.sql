-- The operator who drained a GPU; none: unknown, or the manager did.
ALTER TABLE drained ADD COLUMN drained_by TEXT;
