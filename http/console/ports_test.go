package console_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// metadataWorld implements the ports of the built-in repository.
type metadataWorld struct {
	notIndexed string
	studies    map[string]datamodel.Study
	analyses   []datamodel.Analysis
	types      string
	bodies     map[int]string
	called     func(format string, args ...any)
	down       error
}

func (m *metadataWorld) Register(_ context.Context, body []byte) ([]byte, error) {
	m.called("register %s", body)
	if strings.Contains(string(body), "wrong") {
		return nil, &core.Error{Code: core.CodeInvalid, Message: "the registration is not valid", Violations: []core.Violation{{Pointer: "/schema/type", Message: "must be a type"}, {Message: "lacks name"}}}
	}
	return []byte(`{"name":"variant_call","version":3}`), nil
}

func (m *metadataWorld) Type(_ context.Context, _ string, version int, _ bool, each func([]byte) error) error {
	if version == 0 {
		version = len(m.bodies) // the latest
	}
	body, ok := m.bodies[version]
	if !ok {
		return core.NewError(core.CodeNotFound, "no such version")
	}
	return each([]byte(body))
}

func (m *metadataWorld) List(_ context.Context, _ datamodel.AnalysisTypeQuery, _, _ bool, each func([]byte) error) error {
	if m.down != nil {
		return m.down
	}
	return each([]byte(m.types))
}

func (m *metadataWorld) MetaSchema() []byte { return nil }

func (m *metadataWorld) Studies(context.Context) ([]string, error) {
	var ids []string
	for id := range m.studies {
		ids = append(ids, id)
	}
	return ids, m.down
}

func (m *metadataWorld) Study(_ context.Context, id string) (datamodel.Study, error) {
	if s, ok := m.studies[id]; ok {
		return s, m.down
	}
	return datamodel.Study{}, core.NewError(core.CodeNotFound, "no such study")
}

func (m *metadataWorld) CreateStudy(_ context.Context, s datamodel.Study) error {
	m.called("create %s %s", s.ID, s.Name)
	return nil
}

func (m *metadataWorld) Analysis(_ context.Context, _, id string) (datamodel.Analysis, error) {
	if at := slices.IndexFunc(m.analyses, func(a datamodel.Analysis) bool { return a.ID == id }); at >= 0 {
		return m.analyses[at], m.down
	}
	return datamodel.Analysis{}, core.NewError(core.CodeNotFound, "no such analysis")
}

func (m *metadataWorld) Page(_ context.Context, study string, states []datamodel.AnalysisState, _, _ int, each func(datamodel.Analysis) error) (core.PageInfo, error) {
	if _, ok := m.studies[study]; !ok {
		return core.PageInfo{}, core.NewError(core.CodeNotFound, "no such study")
	}
	for _, a := range m.analyses {
		if !slices.Contains(states, a.State) {
			continue
		}
		if err := each(a); err != nil {
			return core.PageInfo{}, err
		}
	}
	return core.PageInfo{}, nil
}

func (m *metadataWorld) SearchIDs(context.Context, string, []datamodel.AnalysisState, datamodel.IDSearch, func(datamodel.Analysis) error) error {
	return nil
}

func (m *metadataWorld) Submit(_ context.Context, study string, body []byte, _ bool) (string, error) {
	m.called("submit %s", study)
	if strings.Contains(string(body), "wrong") {
		return "", &core.Error{Code: core.CodeInvalid, Message: "the analysis does not match its type", Violations: []core.Violation{{Pointer: "/x", Message: "must be a string"}}}
	}
	return "a1", nil
}

func (m *metadataWorld) Replace(context.Context, string, string, []byte) error { return nil }

func (m *metadataWorld) Merge(context.Context, string, string, []byte) error { return nil }

func (m *metadataWorld) SetState(_ context.Context, study, id string, state datamodel.AnalysisState, _ bool) error {
	m.called("set %s %s %s", study, id, state)
	return nil
}

// searchWorld implements the ports of the catalogues.
type searchWorld struct {
	mu      sync.Mutex
	graph   func(core.GraphQLRequest) string
	queries []core.GraphQLRequest
	// callers are the names of those who sent the queries.
	callers []string
	params  json.RawMessage
	// file is what a download has.
	file string
	// hangs is the prefix of the ids of catalogues whose index does not answer, empty for none.
	hangs string
	down  error
}

func (s *searchWorld) Execute(ctx context.Context, catalogue string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error) {
	if s.hangs != "" && strings.HasPrefix(catalogue, s.hangs) {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return core.GraphQLResponse{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries, s.callers = append(s.queries, r), append(s.callers, who.Name)
	return core.GraphQLResponse{Body: []byte(s.graph(r))}, s.down
}

func (s *searchWorld) Download(_ context.Context, _ string, _ core.Principal, r core.DownloadRequest, begin core.BeginDownload) error {
	s.params = r.Params
	w, err := begin(core.DownloadHead{ContentType: core.MediaTSV, FileName: "rows.tsv"})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, cmp.Or(s.file, "a\tb\n"))
	return err
}

// donorFields are the fields of a catalogue with one nested container.
func donorFields() []core.CatalogueField {
	return []core.CatalogueField{
		{Name: "sex", DisplayName: "Sex", Type: "keyword"},
		{Name: "age", DisplayName: "Age", Type: "integer", Unit: "years"},
		{Name: "born", DisplayName: "Born", Type: "date"},
		{Name: "city", DisplayName: "City", Type: "keyword"},
		{Name: "visits", DisplayName: "Visits", Type: "nested"},
		{Name: "visits.id", DisplayName: "Visit", Type: "keyword"},
	}
}

// donorGraph answers the queries of the pages.
func donorGraph(r core.GraphQLRequest) string {
	switch {
	case strings.Contains(r.Query, "configs"):
		return `{"data":{"donor":{"configs":{"extended":[{"fieldName":"sex","quickSearchEnabled":true}],"facets":{"aggregations":[]},"table":{"columns":[]}}}}}`
	case strings.Contains(r.Query, "mapping"):
		return `{"data":{"donor":{"mapping":{"properties":{}}}}}`
	case strings.Contains(r.Query, "themselves:true"):
		return `{"data":{"donor":{"aggregations":{"city":{"buckets":[{"key":"Bern-West","doc_count":3},{"key":"Basel","doc_count":2}]}}}}}`
	case strings.Contains(r.Query, "histogram"):
		return `{"data":{"donor":{"aggregations":{"age":{"histogram":{"buckets":[{"key":"0","doc_count":3},{"key":"5","doc_count":6}]}}}}}}`
	default:
		return `{"data":{"donor":{"hits":{"total":42,"edges":[{"node":{"id":"d1","age":7,"sex":"male","visits":{"hits":{"edges":[{"node":{"id":"v1"}},{"node":{"id":"v2"}}]}}}}]},` +
			`"aggregations":{"city":{"buckets":[{"key":"Rome","doc_count":9}` + strings.Repeat(`,{"key":"Oslo","doc_count":1}`, 200) + `]},"sex":{"buckets":[{"key":"male","doc_count":30},{"key":"<i>","doc_count":12}]},"age":{"stats":{"min":0,"max":90,"count":42}},"born":{"stats":{"count":0}}}}}}`
	}
}
