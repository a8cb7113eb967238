package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tutti/http/api"
	"tutti/http/metadata"
	"tutti/http/search"
	"tutti/http/system"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// startStub serves the analysis types, the keys and the catalogues of one script, in memory and with the real handler, and
// sets TUTTI_SERVER to its URL.
func startStub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: stub")
	}
	system, err := system.New(system.Ports{Keys: &stubKeys{}, Catalogues: stubCatalogues{}})
	ts.Check(err)
	handler, err := api.New(api.Config{},
		metadata.New(metadata.Ports{AnalysisTypes: &stubTypes{}}),
		search.New(search.Ports{Catalogues: stubCatalogues{}, Data: stubCatalogues{}}), system)
	ts.Check(err)
	server := httptest.NewServer(handler)
	ts.Defer(server.Close)
	ts.Setenv("TUTTI_SERVER", server.URL)
}

// stubTypes are analysis types whose schemas are taken for valid as long as they are objects.
type stubTypes struct {
	mu    sync.Mutex
	types []stubType
}

type stubType struct {
	Name      string                    `json:"name"`
	Version   int                       `json:"version"`
	CreatedAt time.Time                 `json:"createdAt"`
	Options   datamodel.AnalysisOptions `json:"options"`
	Schema    json.RawMessage           `json:"schema,omitempty"`
	Versions  []stubType                `json:"versions,omitempty"`
}

func (s *stubTypes) Register(_ context.Context, body []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var t stubType
	fault := &core.Error{Code: core.CodeInvalid, Message: "the registration is not valid", ErrorID: "malformed.json.schema"}
	if err := json.Unmarshal(body, &t); err != nil || t.Name == "" || !strings.HasPrefix(string(t.Schema), "{") {
		if t.Name == "" {
			fault.Violations = append(fault.Violations, core.Violation{Message: "name is missing", Keyword: "required"})
		}
		if len(t.Schema) > 0 {
			fault.Violations = append(fault.Violations, core.Violation{Pointer: "/schema", Message: "must be an object\x1b[2J", Keyword: "type"})
		}
		return nil, fault
	}
	t.Version, t.CreatedAt = 1, time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for _, other := range s.types {
		if other.Name == t.Name {
			t.Version++
		}
	}
	s.types = slices.Insert(s.types, 0, t)
	return json.Marshal(t)
}

func (s *stubTypes) Type(_ context.Context, name string, version int, unrendered bool, each func([]byte) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var versions []stubType
	for _, t := range s.types {
		if t.Name == name && (version == 0 || t.Version == version) {
			if !unrendered {
				t.Schema = json.RawMessage(`{"rendered":true}`)
			}
			versions = append(versions, t)
		}
	}
	if len(versions) == 0 {
		return &core.Error{Code: core.CodeNotFound, Message: "there is no such analysis type", ErrorID: "analysis.type.not.found"}
	}
	found := versions[0]
	if version == 0 {
		found.Versions = versions
	}
	return marshalled(each, found)
}

func (s *stubTypes) List(_ context.Context, query datamodel.AnalysisTypeQuery, hideSchema, _ bool, each func([]byte) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []stubType{}
	for _, t := range s.types {
		if len(query.Names) == 0 || slices.Contains(query.Names, t.Name) {
			if hideSchema {
				t.Schema = nil
			}
			found = append(found, t)
		}
	}
	count := len(found)
	found = found[min(query.Offset, count):]
	found = found[:min(query.Limit, len(found))]
	return marshalled(each, map[string]any{"limit": query.Limit, "offset": query.Offset, "count": count, "resultSet": found})
}

func marshalled(each func([]byte) error, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return each(body)
}

func (s *stubTypes) MetaSchema() []byte { return []byte(`{}`) }

// stubKeys are keys whose ids are counted.
type stubKeys struct {
	mu   sync.Mutex
	keys []core.APIKey
}

func (s *stubKeys) Create(_ context.Context, name string, scopes []string, expires time.Time) (core.APIKey, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(scopes, "bad scope") {
		return core.APIKey{}, "", &core.Error{Code: core.CodeInvalid, Message: "a scope has no spaces", Hint: "such as tutti.WRITE"}
	}
	key := core.APIKey{
		ID: fmt.Sprintf("k%d", len(s.keys)+1), Name: name, Scopes: scopes, ExpiresAt: expires,
		CreatedAt: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC),
	}
	s.keys = slices.Insert(s.keys, 0, key)
	return key, "tutti_" + key.ID + "_s3cret", nil
}

func (s *stubKeys) List(context.Context) ([]core.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys), nil
}

func (s *stubKeys) Revoke(_ context.Context, id string) (core.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.keys {
		if s.keys[i].ID == id {
			s.keys[i].RevokedAt = time.Date(2026, 5, 4, 13, 0, 0, 0, time.UTC)
			return s.keys[i], nil
		}
	}
	return core.APIKey{}, core.NewError(core.CodeNotFound, "there is no such key")
}

// stubCatalogues are one that can be used and one that failed.
type stubCatalogues struct{}

func (stubCatalogues) IndexedAt(string) time.Time { return time.Time{} }

func (stubCatalogues) Values(context.Context, string, core.Principal, []string, int) (map[string]core.FieldValues, error) {
	return nil, nil
}

func (stubCatalogues) Catalogues() *core.CatalogueSet {
	return &core.CatalogueSet{Catalogues: []*core.Catalogue{
		{
			ID: "donors", DocumentType: "donor", Description: "All donors\x1b[2J",
			Fields: []core.CatalogueField{
				{Name: "donor_id", DisplayName: "Donor ID", Type: "keyword", MultiValued: true},
				{Name: "age", DisplayName: "Age At Diagnosis", Type: "integer", Unit: "years"},
			},
		},
		{
			ID: "files", DocumentType: "file",
			Problem: &core.CatalogueProblem{Code: core.CatalogueIndexNotFound, Message: "the index files does not exist"},
		},
		{
			ID: "samples", DocumentType: "sample", Restricted: true,
			Fields: []core.CatalogueField{{Name: "sample_id", DisplayName: "Sample ID", Type: "keyword", MultiValued: true}},
		},
	}}
}
