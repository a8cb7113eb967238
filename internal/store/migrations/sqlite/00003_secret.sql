-- +goose Up
CREATE TABLE secret (
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT;
