-- +goose Up
-- Analyses copied from another repository: when they last changed there, and the updated_at that they were stored with here.
CREATE TABLE imported_analysis (
  analysis_id       TEXT COLLATE "C" PRIMARY KEY,
  source_updated_at BIGINT NOT NULL,
  updated_at        BIGINT NOT NULL
);
