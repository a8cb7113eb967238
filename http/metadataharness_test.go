package http_test

import (
	"context"
	"encoding/json"
	"time"

	"tutti/http/metadata"
	"tutti/http/system"
	"tutti/internal/core"
)

// metadata are func-field mocks of the analysis types, the built-in metadata repository and the API keys.
type metadataMock struct {
	register func(body []byte) ([]byte, error)
	typ      func(name string, version int, unrendered bool) ([]byte, error)
	list     func(query core.AnalysisTypeQuery, hideSchema, unrendered bool) ([]byte, error)

	studies     func() ([]string, error)
	study       func(id string) (core.Study, error)
	createStudy func(s core.Study) error

	analysis func(study, id string) (core.Analysis, error)
	page     func(ctx context.Context, study string, states []core.AnalysisState, offset, limit int, each func(core.Analysis) error) (core.PageInfo, error)

	submit   func(study string, body []byte, allowDuplicates bool) (string, error)
	replace  func(study, id string, body []byte) error
	merge    func(study, id string, patch []byte) error
	setState func(study, id string, state core.AnalysisState, ignoreUndefinedMD5 bool) error

	searchIDs func(study string, states []core.AnalysisState, search core.IDSearch, each func(core.Analysis) error) error
	file      func(study, objectID string) (json.RawMessage, core.AnalysisState, error)
	change    func(study, objectID string, body []byte) (core.FileChange, error)
	remove    func(study string, objectIDs []string) error
	entities  func(q core.EntityQuery) ([]core.Entity, int, error)
	find      func(id string) (core.Analysis, error)
	export    func(study string, each func(core.Analysis) error) error

	createKey func(name string, scopes []string, expires time.Time) (core.APIKey, string, error)
	listKeys  func() ([]core.APIKey, error)
	revokeKey func(id string) (core.APIKey, error)
}

var (
	_ metadata.AnalysisTypes = (*metadataMock)(nil)
	_ metadata.Studies       = (*metadataMock)(nil)
	_ metadata.Analyses      = (*metadataMock)(nil)
	_ metadata.Submissions   = (*metadataMock)(nil)
	_ metadata.Files         = (*metadataMock)(nil)
	_ metadata.Entities      = (*metadataMock)(nil)
	_ metadata.Exports       = (*metadataMock)(nil)
	_ system.Keys            = apiKeys{}
)

func (m *metadataMock) Register(_ context.Context, body []byte) ([]byte, error) {
	return m.register(body)
}

func (m *metadataMock) Type(_ context.Context, name string, version int, unrendered bool, each func([]byte) error) error {
	body, err := m.typ(name, version, unrendered)
	if err != nil {
		return err
	}
	return each(body)
}

func (m *metadataMock) List(_ context.Context, query core.AnalysisTypeQuery, hideSchema, unrendered bool, each func([]byte) error) error {
	body, err := m.list(query, hideSchema, unrendered)
	if err != nil {
		return err
	}
	return each(body)
}

func (m *metadataMock) MetaSchema() []byte { return []byte(`{"type":"object"}`) }

func (m *metadataMock) Studies(context.Context) ([]string, error) { return m.studies() }

func (m *metadataMock) Study(_ context.Context, id string) (core.Study, error) { return m.study(id) }

func (m *metadataMock) CreateStudy(_ context.Context, s core.Study) error { return m.createStudy(s) }

func (m *metadataMock) Analysis(_ context.Context, study, id string) (core.Analysis, error) {
	return m.analysis(study, id)
}

func (m *metadataMock) Page(ctx context.Context, study string, states []core.AnalysisState, offset, limit int, each func(core.Analysis) error) (core.PageInfo, error) {
	return m.page(ctx, study, states, offset, limit, each)
}

func (m *metadataMock) Submit(_ context.Context, study string, body []byte, allowDuplicates bool) (string, error) {
	return m.submit(study, body, allowDuplicates)
}

func (m *metadataMock) Replace(_ context.Context, study, id string, body []byte) error {
	return m.replace(study, id, body)
}

func (m *metadataMock) Merge(_ context.Context, study, id string, patch []byte) error {
	return m.merge(study, id, patch)
}

func (m *metadataMock) SetState(_ context.Context, study, id string, state core.AnalysisState, ignoreUndefinedMD5 bool) error {
	return m.setState(study, id, state, ignoreUndefinedMD5)
}

func (m *metadataMock) SearchIDs(_ context.Context, study string, states []core.AnalysisState, search core.IDSearch, each func(core.Analysis) error) error {
	return m.searchIDs(study, states, search, each)
}

func (m *metadataMock) File(_ context.Context, study, objectID string) (json.RawMessage, core.AnalysisState, error) {
	return m.file(study, objectID)
}

func (m *metadataMock) ChangeFile(_ context.Context, study, objectID string, body []byte) (core.FileChange, error) {
	return m.change(study, objectID, body)
}

func (m *metadataMock) DeleteFiles(_ context.Context, study string, objectIDs []string) error {
	return m.remove(study, objectIDs)
}

func (m *metadataMock) Entities(_ context.Context, q core.EntityQuery) ([]core.Entity, int, error) {
	return m.entities(q)
}

func (m *metadataMock) Entity(_ context.Context, objectID string) (core.Entity, error) {
	found, _, err := m.entities(core.EntityQuery{ObjectID: objectID, Limit: 1})
	if err != nil {
		return core.Entity{}, err
	}
	return found[0], nil
}

func (m *metadataMock) FindAnalysis(_ context.Context, id string) (core.Analysis, error) {
	return m.find(id)
}

func (m *metadataMock) ExportAnalysis(_ context.Context, id string) (core.Analysis, error) {
	return m.find(id)
}

func (m *metadataMock) ExportStudy(_ context.Context, study string, each func(core.Analysis) error) error {
	return m.export(study, each)
}

// apiKeys returns the keys of a metadata; its List is another method.
type apiKeys struct{ m *metadataMock }

func (k apiKeys) Create(_ context.Context, name string, scopes []string, expires time.Time) (core.APIKey, string, error) {
	return k.m.createKey(name, scopes, expires)
}

func (k apiKeys) List(context.Context) ([]core.APIKey, error) { return k.m.listKeys() }

func (k apiKeys) Revoke(_ context.Context, id string) (core.APIKey, error) { return k.m.revokeKey(id) }

const typeBody = `{"name":"variant_call","version":1,"createdAt":"2026-05-04T12:00:00Z","options":{"fileTypes":[],"externalValidations":[]},"schema":{"type":"object"}}`

// workingMetadata returns a metadata whose calls all succeed.
func workingMetadata() *metadataMock {
	return &metadataMock{
		register: func([]byte) ([]byte, error) { return []byte(typeBody), nil },
		typ:      func(string, int, bool) ([]byte, error) { return []byte(typeBody), nil },
		list: func(core.AnalysisTypeQuery, bool, bool) ([]byte, error) {
			return []byte(`{"limit":20,"offset":0,"count":1,"resultSet":[` + typeBody + `]}`), nil
		},
		studies:     func() ([]string, error) { return []string{"S"}, nil },
		study:       func(id string) (core.Study, error) { return core.Study{ID: id, Name: "Study " + id}, nil },
		createStudy: func(core.Study) error { return nil },
		analysis: func(study, id string) (core.Analysis, error) {
			return newAnalysis(study, id, core.StatePublished), nil
		},
		page: func(_ context.Context, study string, states []core.AnalysisState, _, _ int, each func(core.Analysis) error) (core.PageInfo, error) {
			return core.PageInfo{Rows: 1, Total: 1}, each(newAnalysis(study, "A", states[0]))
		},
		submit:   func(string, []byte, bool) (string, error) { return "A", nil },
		replace:  func(string, string, []byte) error { return nil },
		merge:    func(string, string, []byte) error { return nil },
		setState: func(string, string, core.AnalysisState, bool) error { return nil },
		searchIDs: func(study string, states []core.AnalysisState, _ core.IDSearch, each func(core.Analysis) error) error {
			return each(newAnalysis(study, "A", states[0]))
		},
		file: func(string, string) (json.RawMessage, core.AnalysisState, error) {
			return json.RawMessage(`{"objectId":"O","fileName":"a"}`), core.StatePublished, nil
		},
		change: func(string, string, []byte) (core.FileChange, error) {
			return core.FileChange{Type: core.FileUnchanged, AnalysisID: "A", State: core.StatePublished, Before: json.RawMessage(`{"fileName":"a"}`)}, nil
		},
		remove: func(string, []string) error { return nil },
		entities: func(q core.EntityQuery) ([]core.Entity, int, error) {
			return []core.Entity{{ObjectID: "O", AnalysisID: "A", FileName: "a.bam", Study: "S", Access: "open"}}, 1, nil
		},
		find: func(id string) (core.Analysis, error) { return newAnalysis("S", id, core.StatePublished), nil },
		export: func(study string, each func(core.Analysis) error) error {
			return each(newAnalysis(study, "A", core.StateUnpublished))
		},
		createKey: func(name string, scopes []string, expires time.Time) (core.APIKey, string, error) {
			return core.APIKey{ID: "k1", Name: name, Scopes: scopes, CreatedAt: noon, ExpiresAt: expires}, "tutti_k1_secret", nil
		},
		listKeys: func() ([]core.APIKey, error) {
			return []core.APIKey{{ID: "k1", Name: "portal", Scopes: []string{"S.READ"}, CreatedAt: noon}}, nil
		},
		revokeKey: func(id string) (core.APIKey, error) {
			return core.APIKey{ID: id, Name: "portal", Scopes: []string{"S.READ"}, CreatedAt: noon, RevokedAt: noon}, nil
		},
	}
}

// newAnalysis makes an analysis with one file, in the form that it is stored in.
func newAnalysis(study, id string, state core.AnalysisState) core.Analysis {
	body, err := json.Marshal(map[string]any{
		"analysisId": id, "studyId": study, "analysisState": state,
		"analysisType": map[string]any{"name": "variant_call", "version": 1},
		"files":        []any{map[string]any{"fileName": id + ".vcf", "fileSize": 1}},
	})
	if err != nil {
		body = nil // strings and numbers always marshal
	}
	return core.Analysis{ID: id, Study: study, State: state, Body: body}
}
