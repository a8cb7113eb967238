-- +goose Up
-- A hash of the analysis in the other repository takes the place of its time, which Song does not change with a file.
ALTER TABLE imported_analysis RENAME COLUMN source_updated_at TO source_hash;
