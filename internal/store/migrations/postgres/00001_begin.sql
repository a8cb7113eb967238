-- +goose Up
CREATE TABLE analysis_type_name (
  name   TEXT COLLATE "C" PRIMARY KEY,
  latest BIGINT NOT NULL
);

CREATE TABLE analysis_type (
  seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name       TEXT COLLATE "C" NOT NULL,
  version    BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  options    TEXT COLLATE "C" NOT NULL,
  schema     TEXT COLLATE "C" NOT NULL,
  UNIQUE (name, version)
);

CREATE TABLE study (
  id           TEXT COLLATE "C" PRIMARY KEY,
  name         TEXT COLLATE "C" NOT NULL,
  organization TEXT COLLATE "C" NOT NULL,
  description  TEXT COLLATE "C" NOT NULL,
  created_at   BIGINT NOT NULL
);

CREATE TABLE analysis (
  seq          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id           TEXT COLLATE "C" NOT NULL UNIQUE,
  study        TEXT COLLATE "C" NOT NULL REFERENCES study (id),
  state        TEXT COLLATE "C" NOT NULL,
  type_name    TEXT COLLATE "C" NOT NULL,
  type_version BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  body         BYTEA NOT NULL
);
CREATE INDEX analysis_by_state ON analysis (study, state, seq);
CREATE INDEX analysis_by_study ON analysis (study, seq);

CREATE TABLE analysis_file (
  study       TEXT COLLATE "C" NOT NULL,
  md5         TEXT COLLATE "C" NOT NULL,
  analysis_id TEXT COLLATE "C" NOT NULL,
  name        TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (analysis_id, name)
);
CREATE INDEX analysis_file_by_md5 ON analysis_file (study, md5);

CREATE TABLE outbox (
  seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id          TEXT COLLATE "C" NOT NULL,
  study       TEXT COLLATE "C" NOT NULL,
  analysis_id TEXT COLLATE "C" NOT NULL,
  created_at  BIGINT NOT NULL
);

CREATE TABLE api_key (
  id         TEXT COLLATE "C" PRIMARY KEY,
  name       TEXT COLLATE "C" NOT NULL,
  scopes     TEXT COLLATE "C" NOT NULL,
  hash       BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  revoked_at BIGINT NOT NULL
);
