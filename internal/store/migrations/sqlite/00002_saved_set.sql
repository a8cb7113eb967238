-- +goose Up
CREATE TABLE saved_set (
  id         TEXT PRIMARY KEY,
  owner      TEXT NOT NULL,
  catalogue  TEXT NOT NULL,
  type       TEXT NOT NULL,
  path       TEXT NOT NULL,
  user_id    TEXT NOT NULL,
  sqon       TEXT NOT NULL,
  size       INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  used_at    INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  members    BLOB NOT NULL
) STRICT;
CREATE INDEX saved_set_by_owner ON saved_set (owner, created_at);
CREATE INDEX saved_set_by_expiry ON saved_set (expires_at);
