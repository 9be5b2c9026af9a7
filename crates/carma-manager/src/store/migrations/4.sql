-- What users want to be told of, each way once, and the last event that they were told of by it.
CREATE TABLE notifications (
    uid INTEGER NOT NULL,
    channel TEXT NOT NULL,
    occasions TEXT NOT NULL,
    place INTEGER NOT NULL,
    told INTEGER NOT NULL,
    PRIMARY KEY (uid, channel)
) STRICT, WITHOUT ROWID;
