package metadata_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/tools/apitest"
)

// TestEntitiesOfScore replays the requests of Score's server and client, with and without a token.
func TestEntitiesOfScore(t *testing.T) {
	var asked datamodel.EntityQuery
	all := make([]datamodel.Entity, 5)
	for i := range all {
		all[i] = datamodel.Entity{ObjectID: fmt.Sprint("o", i), AnalysisID: "A", FileName: fmt.Sprint("f", i, ".bam"), Study: "S", Access: "controlled"}
	}
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.EntitiesFn = func(q datamodel.EntityQuery) ([]datamodel.Entity, int, error) {
			asked = q
			if q.ObjectID == "none" {
				return nil, 0, &core.Error{Code: core.CodeNotFound, ErrorID: "legacy.entity.not.found", Message: "no file has this object id"}
			}
			return all[min(q.Offset, 5):min(q.Offset+q.Limit, 5)], 5, nil
		}
	})
	h, err := apitest.Assemble(p, api.Config{Authenticator: readers{}})
	if err != nil {
		t.Fatal(err)
	}
	get := func(t *testing.T, target, token string) (*http.Response, []byte) {
		t.Helper()
		header := http.Header{"Accept": {"application/json, application/*+json"}}
		if token != "" {
			header.Set("Authorization", "Bearer "+token)
		}
		if strings.HasPrefix(target, "/entities/?") { // the document has no path with a final slash
			_, res, body := apitest.Exchange(t, apitest.Handler{Router: h}, apitest.Ask{Method: "GET", Target: target, Header: header})
			return res, body
		}
		return apitest.Do(t, apitest.Handler{Router: h}, apitest.Ask{Method: "GET", Target: target, Header: header})
	}
	for _, token := range []string{"", "any", "expired"} {
		res, body := get(t, "/entities/o0", token)
		if want := `{"access":"controlled","fileName":"f0.bam","gnosId":"A","id":"o0","projectCode":"S"}`; res.StatusCode != 200 || strings.TrimSpace(string(body)) != want {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	}
	for target, want := range map[string]datamodel.EntityQuery{
		"/entities?gnosId=A&size=2000&page=0":                                 {AnalysisID: "A", Limit: 2000},
		"/entities?gnosId=A&projectCode=S&size=2000&page=0":                   {AnalysisID: "A", Study: "S", Limit: 2000},
		"/entities/?fields=id&fields=fileName&fields=gnosId&size=2000&page=3": {Limit: 2000, Offset: 6000},
		"/entities":                             {Limit: 10},
		"/entities?size=0&page=-1":              {Limit: 10},
		"/entities?size=x&page=y&gnosId=":       {Limit: 10},
		"/entities?size=5000&page=1":            {Limit: 2000, Offset: 2000},
		"/entities?id=o&fileName=f&access=open": {ObjectID: "o", FileName: "f", Access: "open", Limit: 10},
	} {
		res, body := get(t, target, "")
		if diff := cmp.Diff(want, asked); diff != "" || res.StatusCode != 200 {
			t.Errorf("%s: %d %s %s", target, res.StatusCode, body, diff)
		}
	}
	var ids, last []string
	for page := range 3 {
		_, body := get(t, fmt.Sprintf("/entities?fields=id&size=2&page=%d", page), "")
		last = append(last, gjson.GetBytes(body, "last").Raw)
		ids = append(ids, gjson.GetBytes(body, "content").Raw)
		if n := gjson.GetBytes(body, "totalPages").Int(); n != 3 {
			t.Errorf("%d pages", n)
		}
	}
	if diff := cmp.Diff([]string{`[{"id":"o0"},{"id":"o1"}]`, `[{"id":"o2"},{"id":"o3"}]`, `[{"id":"o4"}]`}, ids); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"false", "false", "true"}, last); diff != "" {
		t.Error(diff)
	}
	for target, want := range map[string]string{
		"/entities?sort=id":           "400 illegal.query.parameter",
		"/entities?fields=id&x=":      "400 illegal.query.parameter",
		"/entities?fields=id,nothing": "400 illegal.filter.parameter",
		"/entities?gnosId=A&gnosId=B": "400 malformed.parameter",
		"/entities/none":              "404 legacy.entity.not.found",
		"/entities/a%00":              "400 malformed.parameter",
		"/entities?gnosId=%zz":        "400 malformed.parameter",
	} {
		res, body := get(t, target, "")
		doc := gjson.ParseBytes(body)
		if got := fmt.Sprint(res.StatusCode, " ", doc.Get("errorId").Str); got != want || !doc.Get("stackTrace").IsArray() || !doc.Get("debugMessage").Exists() {
			t.Errorf("%s: %s, want %s: %s", target, got, want, body)
		}
	}
}

// TestStateWithoutToken: a caller without a token reads the state of an analysis, as Score's server does before a transfer, and no more.
func TestStateWithoutToken(t *testing.T) {
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.AnalysisFn = func(study, id string) (datamodel.Analysis, error) {
			return apitest.NewAnalysis(study, id, datamodel.StateUnpublished), nil
		}
	})
	for name, tt := range map[string]struct {
		cfg  api.Config
		want string
	}{
		"tokens":    {api.Config{Authenticator: readers{}}, `{"analysisId":"A","studyId":"S","analysisState":"UNPUBLISHED"}`},
		"no tokens": {api.Config{}, string(apitest.NewAnalysis("S", "A", datamodel.StateUnpublished).Body)},
	} {
		h, err := apitest.Assemble(p, tt.cfg)
		if err != nil {
			t.Fatal(err)
		}
		res, body := apitest.Do(t, apitest.Handler{Router: h}, apitest.Ask{Method: "GET", Target: "/studies/S/analysis/A"})
		if res.StatusCode != 200 || strings.TrimSpace(string(body)) != tt.want {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
		if res, _ := apitest.Do(t, apitest.Handler{Router: h}, apitest.Ask{Method: "GET", Target: "/studies/S/analysis/A/files"}); (res.StatusCode == 200) != (name == "no tokens") {
			t.Errorf("%s: files %d", name, res.StatusCode)
		}
	}
}

// TestFilesOfAStudy: the responses have the members that Song's command line reads.
func TestFilesOfAStudy(t *testing.T) {
	var deleted []string
	sent, did := "", datamodel.FileContentChanged
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.FileFn = func(_, objectID string) (json.RawMessage, datamodel.AnalysisState, error) {
			return json.RawMessage(`{"objectId":"` + objectID + `","fileName":"f"}`), datamodel.AnalysisState(strings.ToUpper(objectID)), nil
		}
		m.Change = func(_, _ string, body []byte) (datamodel.FileChange, error) {
			sent = string(body)
			return datamodel.FileChange{Type: did, AnalysisID: "A", State: datamodel.StateUnpublished, Before: json.RawMessage(`{"fileName":"f"}`)}, nil
		}
		m.Remove = func(_ string, objectIDs []string) error {
			deleted = objectIDs
			return nil
		}
	})
	h, err := apitest.Assemble(p, api.Config{Authenticator: readers{}})
	if err != nil {
		t.Fatal(err)
	}
	call := func(method, target, token, body string) (int, string) {
		t.Helper()
		res, answer := apitest.Do(t, apitest.Handler{Router: h}, apitest.Ask{Method: method, Target: target, Body: body, Header: http.Header{
			"Authorization": {"Bearer " + token}, "Content-Type": {"application/json;charset=UTF-8"}, "Accept": {"application/json;charset=UTF-8"},
		}})
		return res.StatusCode, strings.TrimSpace(string(answer))
	}
	for _, tt := range []struct {
		method, target, token, body string
		status                      int
		want                        string
	}{
		{"GET", "/studies/S/files/published", "any", "", 200, `{"objectId":"published","fileName":"f"}`},
		{"GET", "/studies/S/files/unpublished", "reader", "", 200, `{"objectId":"unpublished","fileName":"f"}`},
		{"GET", "/studies/S/files/unpublished", "any", "", 404, `"errorId":"file.not.found"`},
		{"PUT", "/studies/S/files/o", "reader", `{}`, 403, `"errorId":"forbidden.token"`},
		{
			"PUT", "/studies/S/files/o", "writer", `{"fileSize":1010}`, 200,
			`{"fileUpdateType":"CONTENT_UPDATE","originalAnalysisState":"UNPUBLISHED","unpublishedAnalysis":false,` +
				`"message":"Updated file with objectId 'o' and analysisId 'A'","originalFile":{"fileName":"f"}}`,
		},
		{"PUT", "/studies/S/files/o", "writer", ``, 400, `"errorId":"malformed.parameter"`},
		{"DELETE", "/studies/S/files/a,b%2Cc", "reader", "", 403, `"errorId":"forbidden.token"`},
		{"DELETE", "/studies/S/files/a,b%2Cc", "writer", "", 200, `OK`},
		{"DELETE", "/studies/S/files/a,,b", "writer", "", 400, `"errorId":"malformed.parameter"`},
		{"DELETE", "/studies/S/files/" + strings.Repeat("a,", 1000) + "a", "writer", "", 400, `"errorId":"malformed.parameter"`},
	} {
		if status, got := call(tt.method, tt.target, tt.token, tt.body); status != tt.status || !strings.Contains(got, tt.want) {
			t.Errorf("%s %.50s: %d %s", tt.method, tt.target, status, got)
		}
	}
	if diff := cmp.Diff([]string{"a", "b,c"}, deleted); diff != "" || sent != `{"fileSize":1010}` {
		t.Error(sent, diff)
	}
	did = datamodel.FileUnchanged
	if _, got := call("PUT", "/studies/S/files/o", "writer", "{}"); !strings.Contains(got, `"No update for file with objectId 'o' and analysisId 'A'"`) {
		t.Error(got)
	}
}

// TestSearchIDsOfSong: who may not read unpublished analyses finds the published ones.
func TestSearchIDsOfSong(t *testing.T) {
	var search datamodel.IDSearch
	var in []datamodel.AnalysisState
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.SearchIDsFn = func(study string, states []datamodel.AnalysisState, s datamodel.IDSearch, each func(datamodel.Analysis) error) error {
			search, in = s, states
			if s.DonorID == "(" {
				return &core.Error{Code: core.CodeInvalid, ErrorID: "search.term.syntax", Message: "no expression"}
			}
			return each(apitest.NewAnalysis(study, "A", states[0]))
		}
	})
	h, err := apitest.Assemble(p, api.Config{Authenticator: readers{}})
	if err != nil {
		t.Fatal(err)
	}
	get := func(target, token string) (int, string) {
		res, body := apitest.Do(t, apitest.Handler{Router: h}, apitest.Ask{Method: "GET", Target: target, Header: http.Header{"Authorization": {"Bearer " + token}}})
		return res.StatusCode, string(body)
	}
	const path = "/studies/S/analysis/search/id"
	status, body := get(path+"?donorId=D&specimenId=SP&sampleId=SA&submitterDonorId=d&submitterSpecimenId=sp&submitterSampleId=sa&fileId=F&x=1", "reader")
	want := datamodel.IDSearch{DonorID: "D", SpecimenID: "SP", SampleID: "SA", SubmitterDonorID: "d", SubmitterSpecimenID: "sp", SubmitterSampleID: "sa", FileID: "F"}
	if diff := cmp.Diff(want, search); diff != "" || status != 200 || len(in) != 3 || gjson.Get(body, "0.analysisId").Str != "A" {
		t.Error(status, body, in, diff)
	}
	if status, _ := get(path+"?fileId=", "any"); status != 200 || len(in) != 1 || in[0] != datamodel.StatePublished || search != (datamodel.IDSearch{}) {
		t.Error(status, in, search)
	}
	if status, body := get(path+"?donorId=(", "reader"); status != 400 || gjson.Get(body, "errorId").Str != "search.term.syntax" {
		t.Error(status, body)
	}
}

// TestExports: analyses are grouped by their studies; one that the caller may not read fails the whole.
func TestExports(t *testing.T) {
	found := map[string]int{}
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.Find = func(id string) (datamodel.Analysis, error) {
			if id == "none" {
				return datamodel.Analysis{}, &core.Error{Code: core.CodeNotFound, ErrorID: "analysis.id.not.found", Message: "none"}
			}
			state := datamodel.StatePublished
			found[id]++
			if strings.HasPrefix(id, "u") || id == "withdrawn" && found[id] > 1 {
				state = datamodel.StateUnpublished
			}
			study := "S"
			if strings.HasSuffix(id, "T") {
				study = "T"
			}
			return datamodel.Analysis{ID: id, Study: study, State: state, Body: []byte(`{"studyId":"` + study + `","analysisType":{},"n":"` + id + `"}`)}, nil
		}
		m.Export = func(study string, each func(datamodel.Analysis) error) error {
			if study == "empty" {
				return nil
			}
			return each(datamodel.Analysis{Body: []byte(`{"studyId":"S","analysisType":{}}`)})
		}
	})
	h, err := apitest.Assemble(p, api.Config{Authenticator: readers{}})
	if err != nil {
		t.Fatal(err)
	}
	payload := func(id, study string) string { return `{"studyId":"` + study + `","analysisType":{},"n":"` + id + `"}` }
	for _, tt := range []struct {
		target, token string
		status        int
		want          string
	}{
		{"/export/studies/S", "reader", 200, `[{"studyId":"S","payloads":[{"studyId":"S","analysisType":{}}]}]`},
		{"/export/studies/S", "any", 403, "forbidden.token"},
		{"/export/analysis/a", "any", 200, `[{"studyId":"S","payloads":[` + payload("a", "S") + `]}]`},
		{
			"/export/analysis/a,bT,u,cT", "reader", 200,
			`[{"studyId":"S","payloads":[` + payload("a", "S") + `,` + payload("u", "S") + `]},{"studyId":"T","payloads":[` + payload("bT", "T") + `,` + payload("cT", "T") + `]}]`,
		},
		{"/export/analysis/a,u", "any", 404, "analysis.id.not.found"},
		{"/export/analysis/a,withdrawn", "any", 404, "analysis.id.not.found"},
		{"/export/analysis/a,none", "reader", 404, "analysis.id.not.found"},
		{"/export/analysis/" + strings.TrimSuffix(strings.Repeat("0199b2a7-3c2f-7000-8000-000000000000,", 100), ","), "any", 200, `0000"}]}]`},
	} {
		res, body := apitest.Do(t, apitest.Handler{Router: h}, apitest.Ask{Method: "GET", Target: tt.target, Header: http.Header{"Authorization": {"Bearer " + tt.token}}})
		if res.StatusCode != tt.status || !strings.Contains(string(body), tt.want) {
			t.Errorf("%.60s: %d %s", tt.target, res.StatusCode, body)
		}
	}
	h, err = apitest.Assemble(p, api.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, body := apitest.Do(t, apitest.Handler{Router: h}, apitest.Ask{Method: "GET", Target: "/export/studies/empty"}); strings.TrimSpace(string(body)) != `[{"studyId":"empty","payloads":[]}]` {
		t.Errorf("%s", body)
	}
}

// TestSongAPIDocs: GET /v2/api-docs describes every route of Song, as OpenAPI 3.0.
func TestSongAPIDocs(t *testing.T) {
	h, err := apitest.Assemble(apitest.Working(), api.Config{BasePath: "/song"})
	if err != nil {
		t.Fatal(err)
	}
	res, body := apitest.Do(t, apitest.Handler{Router: h, Base: "/song"}, apitest.Ask{Method: "GET", Target: "/song/v2/api-docs"})
	doc := gjson.ParseBytes(body)
	if res.StatusCode != 200 || doc.Get("openapi").Str != "3.0.3" || doc.Get("servers.0.url").Str != "/song" {
		t.Fatalf("%d %.300s", res.StatusCode, body)
	}
	described := map[string]bool{}
	doc.Get("paths").ForEach(func(path, item gjson.Result) bool {
		item.ForEach(func(method, _ gjson.Result) bool {
			described[strings.ToUpper(method.Str)+" "+path.Str] = true
			return true
		})
		return true
	})
	for _, route := range h.Routes() {
		first, _, _ := strings.Cut(route.Pattern[1:], "/")
		song := strings.Contains(" schemas studies submit entities export isAlive ", " "+first+" ")
		if name := route.Method + " " + route.Pattern; described[name] != song {
			t.Errorf("%s: described is %t", name, described[name])
		}
	}
	for _, keyword := range []string{`"const":`, `"type":[`, `"contains":`, `"jsonSchemaDialect":`} {
		if strings.Contains(string(body), keyword) {
			t.Errorf("the document has %s", keyword)
		}
	}
	loader := openapi3.NewLoader()
	if _, err := loader.LoadFromData(body); err != nil {
		t.Error(err)
	}
}
