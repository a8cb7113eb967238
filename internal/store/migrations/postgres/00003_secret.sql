-- +goose Up
CREATE TABLE secret (
  name  TEXT COLLATE "C" PRIMARY KEY,
  value BYTEA NOT NULL
);
