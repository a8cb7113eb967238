-- +goose Up
-- A JSON object as it was sent, empty for none.
ALTER TABLE study ADD COLUMN info TEXT NOT NULL DEFAULT '';
