-- +goose Up
CREATE TABLE saved_set (
  id         TEXT COLLATE "C" PRIMARY KEY,
  owner      TEXT COLLATE "C" NOT NULL,
  catalogue  TEXT COLLATE "C" NOT NULL,
  type       TEXT COLLATE "C" NOT NULL,
  path       TEXT COLLATE "C" NOT NULL,
  user_id    TEXT COLLATE "C" NOT NULL,
  sqon       TEXT COLLATE "C" NOT NULL,
  size       BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  used_at    BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  members    BYTEA NOT NULL
);
CREATE INDEX saved_set_by_owner ON saved_set (owner, created_at);
CREATE INDEX saved_set_by_expiry ON saved_set (expires_at);
