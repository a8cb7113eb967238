package metadata_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/tools/apitest"
)

func TestIsAlive(t *testing.T) {
	res, body := apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{}), apitest.Ask{Method: "GET", Target: "/isAlive"})
	if res.StatusCode != 200 || string(body) != "true" || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

// TestHealth: Conductor's scripts search this text.
func TestHealth(t *testing.T) {
	res, body := apitest.Do(t, apitest.NewHandler(t, apitest.Working(), api.Config{}), apitest.Ask{Method: "GET", Target: "/health"})
	if res.StatusCode != 200 || !strings.Contains(string(body), `"message":"OK"`) {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

func TestListStudies(t *testing.T) {
	for want, ids := range map[string][]string{`[]`: nil, `["A","B <&>"]`: {"A", "B <&>"}} {
		t.Run(want, func(t *testing.T) {
			p := apitest.WithMetadata(func(m *apitest.MetadataMock) { m.StudiesFn = func() ([]string, error) { return ids, nil } })
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: "/studies/all"})
			if res.StatusCode != 200 || string(body) != want {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
		})
	}
}

func TestReadStudy(t *testing.T) {
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.StudyFn = func(id string) (datamodel.Study, error) {
			if id != "a/b" {
				return datamodel.Study{}, &core.Error{Code: core.CodeNotFound, ErrorID: "study.id.does.not.exist", Message: "there is no study " + id}
			}
			return datamodel.Study{ID: id, Name: "N", Organization: "O", Description: "D", Info: json.RawMessage(`{"b":[1]}`)}, nil
		}
	})
	h := apitest.NewHandler(t, p, api.Config{})
	res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/studies/a%2Fb"})
	if want := `{"studyId":"a/b","name":"N","organization":"O","description":"D","info":{"b":[1]}}`; res.StatusCode != 200 || string(body) != want {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	res, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/studies/nobody"})
	if p := apitest.WantProblem(t, res, body, 404, "not_found", "there is no study nobody"); p.ErrorID != "study.id.does.not.exist" {
		t.Errorf("errorId %q", p.ErrorID)
	}
}

func TestCreateStudy(t *testing.T) {
	full := datamodel.Study{ID: "S", Name: "N", Organization: "O", Description: "D"}
	described := full
	described.Info = json.RawMessage(`{"a": 1}`)
	for name, tt := range map[string]struct {
		target, body string
		want         datamodel.Study
	}{
		"no body":           {"/studies/S", "", datamodel.Study{ID: "S"}},
		"white space":       {"/studies/S", " \n", datamodel.Study{ID: "S"}},
		"empty object":      {"/studies/S", "{}", datamodel.Study{ID: "S"}},
		"everything":        {"/studies/S", `{"studyId":"S","name":"N","organization":"O","description":"D"}`, full},
		"as Song's clients": {"/studies/S", `{"studyId":"S","name":"N","organization":"O","description":"D","info":{"a": 1}}`, described},
		"nulls":             {"/studies/S", `{"studyId":null,"name":null,"info":null}`, datamodel.Study{ID: "S"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got datamodel.Study
			p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
				m.CreateStudyFn = func(s datamodel.Study) error {
					got = s
					return nil
				}
			})
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "POST", Target: tt.target, Body: tt.body})
			if diff := cmp.Diff(tt.want, got); diff != "" || res.StatusCode != 200 {
				t.Errorf("%d %s", res.StatusCode, diff)
			}
			if name == "everything" && string(body) != `{"studyId":"S","name":"N","organization":"O","description":"D","info":{},"message":"Successfully created study 'S'"}` {
				t.Errorf("got %s", body)
			}
		})
	}
}

func TestCreateStudyRefuses(t *testing.T) {
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.CreateStudyFn = func(s datamodel.Study) error {
			return &core.Error{Code: core.CodeConflict, ErrorID: "study.already.exists", Message: "there is a study " + s.ID + " already"}
		}
	})
	h := apitest.NewHandler(t, p, api.Config{MaxBodyBytes: 1 << 20})
	deep := strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001)
	for name, tt := range map[string]struct {
		ask           apitest.Ask
		status        int
		code, errorID string
		text          string
	}{
		"there already":   {apitest.Ask{Body: "{}"}, 409, "conflict", "study.already.exists", "there is a study S already"},
		"another's body":  {apitest.Ask{Body: `{"studyId":"T"}`}, 409, "conflict", "study.id.mismatch", `the body is of study "T", the path of study "S"`},
		"not JSON":        {apitest.Ask{Body: `{"name":`}, 400, "invalid", "malformed.parameter", "the body is not valid JSON"},
		"more behind it":  {apitest.Ask{Body: `{} {}`}, 400, "invalid", "malformed.parameter", "the body is not valid JSON"},
		"an array":        {apitest.Ask{Body: `[]`}, 400, "invalid", "malformed.parameter", "the body is not a JSON object"},
		"null":            {apitest.Ask{Body: `null`}, 400, "invalid", "malformed.parameter", "the body is not a JSON object"},
		"a number":        {apitest.Ask{Body: `{"name":1}`}, 400, "invalid", "malformed.parameter", "member name of the body must be a string"},
		"an object in it": {apitest.Ask{Body: `{"organization":{}}`}, 400, "invalid", "malformed.parameter", "member organization of the body must be a string"},
		"a member twice":  {apitest.Ask{Body: `{"name":"A","name":"B"}`}, 400, "invalid", "malformed.parameter", `member "name" of the body appears twice`},
		"info twice":      {apitest.Ask{Body: `{"info":{},"info":{}}`}, 400, "invalid", "malformed.parameter", `member "info" of the body appears twice`},
		"info as text":    {apitest.Ask{Body: `{"info":"{}"}`}, 400, "invalid", "malformed.parameter", "member info of the body must be an object"},
		"unknown member":  {apitest.Ask{Body: `{"Name":"N"}`}, 400, "invalid", "malformed.parameter", `unknown member "Name"`},
		"a NUL":           {apitest.Ask{Body: `{"description":"a\u0000b"}`}, 400, "invalid", "malformed.parameter", "member description of the body contains a NUL character"},
		"not UTF-8":       {apitest.Ask{Body: "{\"name\":\"\xff\"}"}, 400, "invalid", "malformed.parameter", "the body is not UTF-8"},
		"deep":            {apitest.Ask{Body: deep}, 400, "invalid", "malformed.parameter", "the body is not valid JSON"},
		"text":            {apitest.Ask{Body: "{}", Header: http.Header{"Content-Type": {"text/plain"}}}, 415, "unsupported_media_type", "unsupported.media.type", "not declared as JSON"},
		"too large":       {apitest.Ask{Body: strings.Repeat(" ", 1<<20+1)}, 413, "too_large", "payload.too.large", "1048576 bytes"},
		"the list's name": {apitest.Ask{Target: "/studies/all", Body: "{}"}, 400, "invalid", "malformed.parameter", `a study must not be called "all"`},
	} {
		t.Run(name, func(t *testing.T) {
			tt.ask.Method = "POST"
			if tt.ask.Target == "" {
				tt.ask.Target = "/studies/S"
			}
			res, body := apitest.Do(t, h, tt.ask)
			if p := apitest.WantProblem(t, res, body, tt.status, tt.code, tt.text); p.ErrorID != tt.errorID {
				t.Errorf("errorId: got %q, want %q", p.ErrorID, tt.errorID)
			}
		})
	}
}
