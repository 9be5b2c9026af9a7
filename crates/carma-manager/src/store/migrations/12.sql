-- The manager that may write, if one does. It counts up while it lives, so that a manager on another host can tell.
CREATE TABLE lease (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    nonce TEXT NOT NULL,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    pid INTEGER NOT NULL,
    renewals INTEGER NOT NULL
) STRICT;
