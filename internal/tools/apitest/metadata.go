package apitest

import (
	"context"
	"encoding/json"
	"time"

	"tutti/http/metadata"
	"tutti/http/system"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

var (
	_ metadata.AnalysisTypes = (*MetadataMock)(nil)
	_ metadata.Studies       = (*MetadataMock)(nil)
	_ metadata.Analyses      = (*MetadataMock)(nil)
	_ metadata.Submissions   = (*MetadataMock)(nil)
	_ metadata.Files         = (*MetadataMock)(nil)
	_ metadata.Entities      = (*MetadataMock)(nil)
	_ metadata.Exports       = (*MetadataMock)(nil)
	_ system.Keys            = APIKeys{}
)

// MetadataMock are func-field mocks of the analysis types, the built-in metadata repository and the API keys.
type MetadataMock struct {
	// NotIndexed is metadata.Ports.NotIndexed.
	NotIndexed string

	RegisterFn func(body []byte) ([]byte, error)
	TypeFn     func(name string, version int, unrendered bool) ([]byte, error)
	ListFn     func(query datamodel.AnalysisTypeQuery, hideSchema, unrendered bool) ([]byte, error)

	StudiesFn     func() ([]string, error)
	StudyFn       func(id string) (datamodel.Study, error)
	CreateStudyFn func(s datamodel.Study) error

	AnalysisFn func(study, id string) (datamodel.Analysis, error)
	PageFn     func(ctx context.Context, study string, states []datamodel.AnalysisState, offset, limit int, each func(datamodel.Analysis) error) (core.PageInfo, error)

	SubmitFn   func(study string, body []byte, allowDuplicates bool) (string, error)
	ReplaceFn  func(study, id string, body []byte) error
	MergeFn    func(study, id string, patch []byte) error
	SetStateFn func(study, id string, state datamodel.AnalysisState, ignoreUndefinedMD5 bool) error

	SearchIDsFn func(study string, states []datamodel.AnalysisState, search datamodel.IDSearch, each func(datamodel.Analysis) error) error
	FileFn      func(study, objectID string) (json.RawMessage, datamodel.AnalysisState, error)
	Change      func(study, objectID string, body []byte) (datamodel.FileChange, error)
	Remove      func(study string, objectIDs []string) error
	EntitiesFn  func(q datamodel.EntityQuery) ([]datamodel.Entity, int, error)
	Find        func(id string) (datamodel.Analysis, error)
	Export      func(study string, each func(datamodel.Analysis) error) error

	CreateKey func(name string, scopes []string, expires time.Time) (core.APIKey, string, error)
	ListKeys  func() ([]core.APIKey, error)
	RevokeKey func(id string) (core.APIKey, error)
}

// Register implements metadata.AnalysisTypes.
func (m *MetadataMock) Register(_ context.Context, body []byte) ([]byte, error) {
	return m.RegisterFn(body)
}

// Type implements metadata.AnalysisTypes.
func (m *MetadataMock) Type(_ context.Context, name string, version int, unrendered bool, each func([]byte) error) error {
	body, err := m.TypeFn(name, version, unrendered)
	if err != nil {
		return err
	}
	return each(body)
}

// List implements metadata.AnalysisTypes.
func (m *MetadataMock) List(_ context.Context, query datamodel.AnalysisTypeQuery, hideSchema, unrendered bool, each func([]byte) error) error {
	body, err := m.ListFn(query, hideSchema, unrendered)
	if err != nil {
		return err
	}
	return each(body)
}

// MetaSchema implements metadata.AnalysisTypes.
func (m *MetadataMock) MetaSchema() []byte { return []byte(`{"type":"object"}`) }

// Studies implements metadata.Studies.
func (m *MetadataMock) Studies(context.Context) ([]string, error) { return m.StudiesFn() }

// Study implements metadata.Studies.
func (m *MetadataMock) Study(_ context.Context, id string) (datamodel.Study, error) {
	return m.StudyFn(id)
}

// CreateStudy implements metadata.Studies.
func (m *MetadataMock) CreateStudy(_ context.Context, s datamodel.Study) error {
	return m.CreateStudyFn(s)
}

// Analysis implements metadata.Analyses.
func (m *MetadataMock) Analysis(_ context.Context, study, id string) (datamodel.Analysis, error) {
	return m.AnalysisFn(study, id)
}

// Page implements metadata.Analyses.
func (m *MetadataMock) Page(ctx context.Context, study string, states []datamodel.AnalysisState, offset, limit int, each func(datamodel.Analysis) error) (core.PageInfo, error) {
	return m.PageFn(ctx, study, states, offset, limit, each)
}

// Submit implements metadata.Submissions.
func (m *MetadataMock) Submit(_ context.Context, study string, body []byte, allowDuplicates bool) (string, error) {
	return m.SubmitFn(study, body, allowDuplicates)
}

// Replace implements metadata.Submissions.
func (m *MetadataMock) Replace(_ context.Context, study, id string, body []byte) error {
	return m.ReplaceFn(study, id, body)
}

// Merge implements metadata.Submissions.
func (m *MetadataMock) Merge(_ context.Context, study, id string, patch []byte) error {
	return m.MergeFn(study, id, patch)
}

// SetState implements metadata.Submissions.
func (m *MetadataMock) SetState(_ context.Context, study, id string, state datamodel.AnalysisState, ignoreUndefinedMD5 bool) error {
	return m.SetStateFn(study, id, state, ignoreUndefinedMD5)
}

// SearchIDs implements metadata.Analyses.
func (m *MetadataMock) SearchIDs(_ context.Context, study string, states []datamodel.AnalysisState, search datamodel.IDSearch, each func(datamodel.Analysis) error) error {
	return m.SearchIDsFn(study, states, search, each)
}

// File implements metadata.Files.
func (m *MetadataMock) File(_ context.Context, study, objectID string) (json.RawMessage, datamodel.AnalysisState, error) {
	return m.FileFn(study, objectID)
}

// ChangeFile implements metadata.Files.
func (m *MetadataMock) ChangeFile(_ context.Context, study, objectID string, body []byte) (datamodel.FileChange, error) {
	return m.Change(study, objectID, body)
}

// DeleteFiles implements metadata.Files.
func (m *MetadataMock) DeleteFiles(_ context.Context, study string, objectIDs []string) error {
	return m.Remove(study, objectIDs)
}

// Entities implements metadata.Entities.
func (m *MetadataMock) Entities(_ context.Context, q datamodel.EntityQuery) ([]datamodel.Entity, int, error) {
	return m.EntitiesFn(q)
}

// Entity implements metadata.Entities.
func (m *MetadataMock) Entity(_ context.Context, objectID string) (datamodel.Entity, error) {
	found, _, err := m.EntitiesFn(datamodel.EntityQuery{ObjectID: objectID, Limit: 1})
	if err != nil {
		return datamodel.Entity{}, err
	}
	return found[0], nil
}

// FindAnalysis implements metadata.Exports.
func (m *MetadataMock) FindAnalysis(_ context.Context, id string) (datamodel.Analysis, error) {
	return m.Find(id)
}

// ExportAnalysis implements metadata.Exports.
func (m *MetadataMock) ExportAnalysis(_ context.Context, id string) (datamodel.Analysis, error) {
	return m.Find(id)
}

// ExportStudy implements metadata.Exports.
func (m *MetadataMock) ExportStudy(_ context.Context, study string, each func(datamodel.Analysis) error) error {
	return m.Export(study, each)
}

// APIKeys returns the keys of a metadata; its List is another method.
type APIKeys struct{ m *MetadataMock }

// Create implements system.Keys.
func (k APIKeys) Create(_ context.Context, name string, scopes []string, expires time.Time) (core.APIKey, string, error) {
	return k.m.CreateKey(name, scopes, expires)
}

// List implements system.Keys.
func (k APIKeys) List(context.Context) ([]core.APIKey, error) { return k.m.ListKeys() }

// Revoke implements system.Keys.
func (k APIKeys) Revoke(_ context.Context, id string) (core.APIKey, error) { return k.m.RevokeKey(id) }

// TypeBody is a body that registers an analysis type.
const TypeBody = `{"name":"variant_call","version":1,"createdAt":"2026-05-04T12:00:00Z","options":{"fileTypes":[],"externalValidations":[]},"schema":{"type":"object"}}`

// workingMetadata returns a metadata whose calls all succeed.
func workingMetadata() *MetadataMock {
	return &MetadataMock{
		RegisterFn: func([]byte) ([]byte, error) { return []byte(TypeBody), nil },
		TypeFn:     func(string, int, bool) ([]byte, error) { return []byte(TypeBody), nil },
		ListFn: func(datamodel.AnalysisTypeQuery, bool, bool) ([]byte, error) {
			return []byte(`{"limit":20,"offset":0,"count":1,"resultSet":[` + TypeBody + `]}`), nil
		},
		StudiesFn:     func() ([]string, error) { return []string{"S"}, nil },
		StudyFn:       func(id string) (datamodel.Study, error) { return datamodel.Study{ID: id, Name: "Study " + id}, nil },
		CreateStudyFn: func(datamodel.Study) error { return nil },
		AnalysisFn: func(study, id string) (datamodel.Analysis, error) {
			return NewAnalysis(study, id, datamodel.StatePublished), nil
		},
		PageFn: func(_ context.Context, study string, states []datamodel.AnalysisState, _, _ int, each func(datamodel.Analysis) error) (core.PageInfo, error) {
			return core.PageInfo{Rows: 1, Total: 1}, each(NewAnalysis(study, "A", states[0]))
		},
		SubmitFn:   func(string, []byte, bool) (string, error) { return "A", nil },
		ReplaceFn:  func(string, string, []byte) error { return nil },
		MergeFn:    func(string, string, []byte) error { return nil },
		SetStateFn: func(string, string, datamodel.AnalysisState, bool) error { return nil },
		SearchIDsFn: func(study string, states []datamodel.AnalysisState, _ datamodel.IDSearch, each func(datamodel.Analysis) error) error {
			return each(NewAnalysis(study, "A", states[0]))
		},
		FileFn: func(string, string) (json.RawMessage, datamodel.AnalysisState, error) {
			return json.RawMessage(`{"objectId":"O","fileName":"a"}`), datamodel.StatePublished, nil
		},
		Change: func(string, string, []byte) (datamodel.FileChange, error) {
			return datamodel.FileChange{Type: datamodel.FileUnchanged, AnalysisID: "A", State: datamodel.StatePublished, Before: json.RawMessage(`{"fileName":"a"}`)}, nil
		},
		Remove: func(string, []string) error { return nil },
		EntitiesFn: func(q datamodel.EntityQuery) ([]datamodel.Entity, int, error) {
			return []datamodel.Entity{{ObjectID: "O", AnalysisID: "A", FileName: "a.bam", Study: "S", Access: "open"}}, 1, nil
		},
		Find: func(id string) (datamodel.Analysis, error) {
			return NewAnalysis("S", id, datamodel.StatePublished), nil
		},
		Export: func(study string, each func(datamodel.Analysis) error) error {
			return each(NewAnalysis(study, "A", datamodel.StateUnpublished))
		},
		CreateKey: func(name string, scopes []string, expires time.Time) (core.APIKey, string, error) {
			return core.APIKey{ID: "k1", Name: name, Scopes: scopes, CreatedAt: Noon, ExpiresAt: expires}, "tutti_k1_secret", nil
		},
		ListKeys: func() ([]core.APIKey, error) {
			return []core.APIKey{{ID: "k1", Name: "portal", Scopes: []string{"S.READ"}, CreatedAt: Noon}}, nil
		},
		RevokeKey: func(id string) (core.APIKey, error) {
			return core.APIKey{ID: id, Name: "portal", Scopes: []string{"S.READ"}, CreatedAt: Noon, RevokedAt: Noon}, nil
		},
	}
}

// NewAnalysis makes an analysis with one file, in the form that it is stored in.
func NewAnalysis(study, id string, state datamodel.AnalysisState) datamodel.Analysis {
	body, err := json.Marshal(map[string]any{
		"analysisId": id, "studyId": study, "analysisState": state,
		"analysisType": map[string]any{"name": "variant_call", "version": 1},
		"files":        []any{map[string]any{"fileName": id + ".vcf", "fileSize": 1}},
	})
	if err != nil {
		body = nil // strings and numbers always marshal
	}
	return datamodel.Analysis{ID: id, Study: study, State: state, Body: body}
}

// WithMetadata returns working ports with a changed metadata.
func WithMetadata(change func(*MetadataMock)) *Ports {
	p := Working()
	change(p.Metadata)
	return p
}
