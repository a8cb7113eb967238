-- +goose Up
CREATE TABLE analysis_type_name (
  name   TEXT PRIMARY KEY,
  latest INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE analysis_type (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT NOT NULL,
  version    INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  options    TEXT NOT NULL,
  schema     TEXT NOT NULL,
  UNIQUE (name, version)
) STRICT;

CREATE TABLE study (
  id           TEXT PRIMARY KEY,
  name         TEXT NOT NULL,
  organization TEXT NOT NULL,
  description  TEXT NOT NULL,
  created_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE analysis (
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  id           TEXT NOT NULL UNIQUE,
  study        TEXT NOT NULL REFERENCES study (id),
  state        TEXT NOT NULL,
  type_name    TEXT NOT NULL,
  type_version INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  body         BLOB NOT NULL
) STRICT;
CREATE INDEX analysis_by_state ON analysis (study, state, seq);
CREATE INDEX analysis_by_study ON analysis (study, seq);

CREATE TABLE analysis_file (
  study       TEXT NOT NULL,
  md5         TEXT NOT NULL,
  analysis_id TEXT NOT NULL,
  name        TEXT NOT NULL,
  PRIMARY KEY (analysis_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX analysis_file_by_md5 ON analysis_file (study, md5);

CREATE TABLE outbox (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT NOT NULL,
  study       TEXT NOT NULL,
  analysis_id TEXT NOT NULL,
  created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE api_key (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  scopes     TEXT NOT NULL,
  hash       BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
