-- +goose Up
-- The trace of the request that changed the analysis goes on with its indexing.
ALTER TABLE outbox ADD COLUMN traceparent TEXT NOT NULL DEFAULT '';
