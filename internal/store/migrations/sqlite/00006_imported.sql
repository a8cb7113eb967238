-- +goose Up
-- Analyses copied from another repository: when they last changed there, and the updated_at that they were stored with here.
CREATE TABLE imported_analysis (
  analysis_id       TEXT PRIMARY KEY,
  source_updated_at INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
