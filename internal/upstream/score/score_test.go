package score_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/tools/testkit"
	"tutti/internal/upstream/score"
)

const md5 = "93354882b0fc014b49be1b24df8f435e"

func newScore(t *testing.T, cfg testkit.ScoreConfig) *testkit.ScoreServer {
	t.Helper()
	s, err := testkit.NewScore(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func newClient(t *testing.T, cfg score.Config) *score.Client {
	t.Helper()
	c, err := score.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestObject: the server refuses every request that is not Song's.
func TestObject(t *testing.T) {
	s := newScore(t, testkit.ScoreConfig{Token: "t", BasePath: "/base"})
	c := newClient(t, score.Config{URL: s.URL() + "/", Token: "t"})
	for name, tt := range map[string]struct {
		size, md5 any
		want      datamodel.StoredObject
		errorID   string
	}{
		"all":           {int64(9007199254740993), md5, datamodel.StoredObject{Size: 9007199254740993, MD5: md5}, ""},
		"no MD5 sum":    {1, nil, datamodel.StoredObject{Size: 1}, ""},
		"empty MD5 sum": {1, "", datamodel.StoredObject{Size: 1}, ""},
		"short MD5 sum": {1, "abc", datamodel.StoredObject{}, "invalid.storage.download.response"},
		"MD5 number":    {1, 7, datamodel.StoredObject{}, "invalid.storage.download.response"},
		"size as text":  {"1", md5, datamodel.StoredObject{}, "invalid.storage.download.response"},
		"no size":       {nil, md5, datamodel.StoredObject{}, "invalid.storage.download.response"},
		"size 0":        {0, md5, datamodel.StoredObject{}, "invalid.storage.download.response"},
		"size 1.5":      {1.5, md5, datamodel.StoredObject{}, "invalid.storage.download.response"},
	} {
		t.Run(name, func(t *testing.T) {
			s.Put("o1", tt.size, tt.md5)
			got, err := c.Object(t.Context(), "o1")
			if tt.errorID != "" {
				wantError(t, err, core.CodeUpstream, tt.errorID, "")
			} else if err != nil || got != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
	if _, err := c.Object(t.Context(), "o2"); !errors.Is(err, core.ErrObjectAbsent) {
		t.Errorf("an object that was not uploaded: %v", err)
	}
	if n := s.Requests(testkit.RouteScoreOthers); n != 0 {
		t.Errorf("%d other requests", n)
	}
}

func TestObjectErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		fault         testkit.Fault
		token         string
		code          core.Code
		errorID, says string
		calls         int
	}{
		"no token":        {testkit.Fault{Path: regexp.MustCompile("none")}, "", core.CodeUpstream, "storage.service.error", "status 401", 1},
		"forbidden":       {testkit.Fault{Status: 403}, "t", core.CodeUpstream, "storage.service.error", "status 403", 1},
		"not its own 404": {testkit.Fault{Status: 404}, "t", core.CodeUpstream, "storage.service.error", "status 404", 1},
		"a page":          {testkit.Fault{Status: 200, Body: "<html>", ContentType: "text/html"}, "t", core.CodeUpstream, "storage.service.error", "neither true nor false", 1},
		"another object": {
			testkit.Fault{Path: regexp.MustCompile("/download/"), Status: 200, Body: `{"objectId":"o2","objectSize":1,"objectMd5":null}`, ContentType: "application/json"},
			"t", core.CodeUpstream, "invalid.storage.download.response", "not valid", 1,
		},
		"always 500": {testkit.Fault{Status: 500}, "t", core.CodeUnavailable, "storage.service.error", "status 500", 3},
		"twice 500":  {testkit.Fault{Status: 500, Times: 2}, "t", "", "", "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScore(t, testkit.ScoreConfig{Token: "t"})
			s.Put("o1", 1, md5)
			s.Fail(tt.fault)
			_, err := newClient(t, score.Config{URL: s.URL(), Token: tt.token}).Object(t.Context(), "o1")
			if tt.code == "" && err != nil {
				t.Error(err)
			}
			if tt.code != "" {
				wantError(t, err, tt.code, tt.errorID, tt.says)
			}
			if n := s.Requests(testkit.RouteUpload); n != tt.calls {
				t.Errorf("%d requests, want %d", n, tt.calls)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	s := newScore(t, testkit.ScoreConfig{})
	c := newClient(t, score.Config{URL: s.URL()})
	s.Close()
	_, err := c.Object(t.Context(), "o1")
	wantError(t, err, core.CodeUnavailable, "storage.service.error", "could not be reached")
}

func TestNewRejects(t *testing.T) {
	if _, err := score.New(score.Config{URL: "score:8087"}); core.CodeOf(err) != core.CodeInvalid {
		t.Error(err)
	}
}

func wantError(t *testing.T, err error, code core.Code, errorID, says string) {
	t.Helper()
	e, ok := errors.AsType[*core.Error](err)
	hint := "nothing was published; check schemas.storage.url and schemas.storage.token"
	switch {
	case errorID == "invalid.storage.download.response":
		hint = "nothing was published; check schemas.storage.url, and the object in the storage"
	case code == core.CodeUnavailable:
		hint = "nothing was published; try again later"
	}
	if !ok || e.Code != code || e.ErrorID != errorID || !strings.Contains(e.Message, says) || e.Hint != hint {
		t.Errorf("got %#v, want %s %s and the hint %q", err, code, errorID, hint)
	}
}
