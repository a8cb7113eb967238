-- +goose Up
-- The object id and the access of a file; the object id is empty until the metadata repository has filled it in.
ALTER TABLE analysis_file ADD COLUMN object_id TEXT NOT NULL DEFAULT '';
ALTER TABLE analysis_file ADD COLUMN access TEXT NOT NULL DEFAULT '';
CREATE INDEX analysis_file_by_object ON analysis_file (object_id);
