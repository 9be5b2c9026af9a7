-- Finished jobs of each user, oldest first: what is kept is limited per user.
CREATE INDEX jobs_finished_by_user ON jobs (uid, ended, id) WHERE ended IS NOT NULL;
