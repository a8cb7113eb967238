package metadata

import (
	"context"
	"encoding/json"
	"slices"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
)

// File returns a file of a study, a JSON object with its ids, and the state of its analysis. CodeNotFound for an unknown study, and
// (file.not.found) when the study has no file with that object id.
func (r *Repository) File(ctx context.Context, study, objectID string) (json.RawMessage, datamodel.AnalysisState, error) {
	id, err := r.analysisOfFile(ctx, study, objectID)
	if err != nil {
		return nil, "", err
	}
	state, _, body, err := r.read(ctx, r.store.Read(), study, id)
	if err != nil {
		return nil, "", err
	}
	found, ok := analysis.FindFile(body, objectID)
	if !ok {
		return nil, "", fileNotFound()
	}
	return json.RawMessage(found), state, nil
}

func fileNotFound() *core.Error {
	return newError(core.CodeNotFound, idNoFile, "the study has no file of this object id")
}

// analysisOfFile returns the id of the analysis with a file.
func (r *Repository) analysisOfFile(ctx context.Context, study, objectID string) (string, error) {
	if err := r.requireStudy(ctx, r.store.Read(), study); err != nil {
		return "", err
	}
	found, _, err := r.Entities(ctx, datamodel.EntityQuery{ObjectID: objectID, Study: study, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(found) == 0 || objectID == "" {
		return "", fileNotFound()
	}
	return found[0].AnalysisID, nil
}

// ChangeFile changes the size, MD5 sum, access, data type and info of a file, whose object id and analysis stay. Info is merged member
// by member. Size and MD5 sum change only while the analysis is unpublished. Errors: CodeInvalid (invalid.file.update.request,
// payload.parsing) for a bad body, CodeNotFound as File, CodeInvalid (illegal.file.update.request) for a change that the state of the
// analysis does not allow, CodeConflict (duplicate.file) for an MD5 sum that another analysis of the study has.
func (r *Repository) ChangeFile(ctx context.Context, study, objectID string, body []byte) (datamodel.FileChange, error) {
	update, err := analysis.ParseFileUpdate(body)
	if err != nil {
		return datamodel.FileChange{}, err
	}
	id, err := r.analysisOfFile(ctx, study, objectID)
	if err != nil {
		return datamodel.FileChange{}, err
	}
	result := datamodel.FileChange{AnalysisID: id}
	err = r.change(ctx, actionChangeFile, study, id, func(_ context.Context, c *current) (analysis.Payload, datamodel.AnalysisTypeRef, error) {
		p, err := c.Payload()
		if err != nil {
			return analysis.Payload{}, datamodel.AnalysisTypeRef{}, err
		}
		at := slices.IndexFunc(p.Files, func(f analysis.File) bool { return f.ObjectID == objectID })
		before, found := analysis.FindFile(c.Bytes(), objectID)
		if at < 0 || !found {
			return analysis.Payload{}, datamodel.AnalysisTypeRef{}, fileNotFound()
		}
		result.State, result.Before = c.State, json.RawMessage(before)
		if c.State == datamodel.StateSuppressed {
			return analysis.Payload{}, datamodel.AnalysisTypeRef{}, illegalUpdate("the analysis is suppressed: its files cannot be changed")
		}
		did, err := p.ChangeFile(at, &update)
		result.Type = did
		switch {
		case did == datamodel.FileUnchanged:
			return analysis.Payload{}, datamodel.AnalysisTypeRef{}, errUnchanged
		case did == datamodel.FileContentChanged && c.State != datamodel.StateUnpublished:
			return analysis.Payload{}, datamodel.AnalysisTypeRef{}, illegalUpdate("the size and the MD5 sum of a file can be changed only while its analysis is unpublished")
		}
		return p, c.Kind, err
	})
	return result, err
}

func illegalUpdate(message string) *core.Error {
	return newError(core.CodeInvalid, idIllegalUpdate, message)
}

// DeleteFiles removes files of one unpublished analysis, all or none. Errors: CodeNotFound as File, CodeInvalid
// (illegal.file.update.request) when the analysis is not unpublished, would have no files, or the files are of several analyses.
func (r *Repository) DeleteFiles(ctx context.Context, study string, objectIDs []string) error {
	id := ""
	for _, objectID := range objectIDs {
		of, err := r.analysisOfFile(ctx, study, objectID)
		if err != nil {
			return err
		}
		if id != "" && of != id {
			return illegalUpdate("the files are of several analyses: delete those of one analysis at a time")
		}
		id = of
	}
	wanted := len(slices.Compact(slices.Sorted(slices.Values(objectIDs))))
	return r.change(ctx, actionChangeFile, study, id, func(_ context.Context, c *current) (analysis.Payload, datamodel.AnalysisTypeRef, error) {
		p, err := c.Payload()
		if err != nil {
			return analysis.Payload{}, datamodel.AnalysisTypeRef{}, err
		}
		kept := slices.DeleteFunc(slices.Clone(p.Files), func(f analysis.File) bool { return slices.Contains(objectIDs, f.ObjectID) })
		switch {
		case c.State != datamodel.StateUnpublished:
			err = illegalUpdate("files can be deleted only while their analysis is unpublished")
		case len(kept) == 0:
			err = illegalUpdate("an analysis must have at least one file")
		case len(kept)+wanted > len(p.Files):
			err = fileNotFound() // another request deleted some
		default:
			err = p.SetFiles(kept)
		}
		return p, c.Kind, err
	})
}
