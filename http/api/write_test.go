package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/http/metadata"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/tools/apitest"
)

// deadlineWriter notes how much is written under each deadline.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	deadlines int
	// since is what was written since the last deadline, most the most of it.
	since, most int
}

func (w *deadlineWriter) SetWriteDeadline(at time.Time) error {
	if in := time.Until(at); in > 0 && in <= time.Minute {
		w.deadlines++
		w.since = 0
	}
	return nil
}

func (w *deadlineWriter) Write(b []byte) (int, error) {
	if w.deadlines == 0 {
		w.most = 1 << 30
	}
	w.since += len(b)
	w.most = max(w.most, w.since)
	return w.ResponseRecorder.Write(b)
}

// large is a JSON string of a million bytes.
func large() []byte { return []byte(`"` + strings.Repeat("x", 1_000_000) + `"`) }

// TestEveryAnswerHasADeadline for each chunk: a client that reads nothing does not pin a body for ever.
func TestEveryAnswerHasADeadline(t *testing.T) {
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.TypeFn = func(string, int, bool) ([]byte, error) { return large(), nil }
		m.ListFn = func(datamodel.AnalysisTypeQuery, bool, bool) ([]byte, error) { return large(), nil }
		m.RegisterFn = func([]byte) ([]byte, error) { return large(), nil }
		m.StudiesFn = func() ([]string, error) { return []string{string(large())}, nil }
		m.AnalysisFn = func(study, id string) (datamodel.Analysis, error) {
			return datamodel.Analysis{ID: id, Study: study, State: datamodel.StatePublished, Body: large()}, nil
		}
		m.PageFn = func(_ context.Context, study string, states []datamodel.AnalysisState, _, _ int, each func(datamodel.Analysis) error) (core.PageInfo, error) {
			return core.PageInfo{Rows: 1, Total: 1}, each(datamodel.Analysis{ID: "A", Study: study, State: states[0], Body: large()})
		}
	})
	h := apitest.NewHandler(t, p, api.Config{})
	for _, target := range []string{
		"GET /schemas/a", "GET /schemas", "POST /schemas", "GET /studies/all", "GET /studies/S/analysis/A",
		"GET /studies/S/analysis", "GET /openapi.json",
	} {
		t.Run(target, func(t *testing.T) {
			method, path, _ := strings.Cut(target, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}"))
			w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
			h.ServeHTTP(w, r)
			if w.Code != 200 || w.Body.Len() < 100_000 {
				t.Fatalf("got %d, %d bytes", w.Code, w.Body.Len())
			}
			if w.most > 32<<10 {
				t.Errorf("%d bytes under one of %d deadlines", w.most, w.deadlines)
			}
		})
	}
	t.Run("a problem", func(t *testing.T) {
		w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/nowhere", nil))
		if w.Code != 404 || w.deadlines == 0 {
			t.Errorf("got %d with %d deadlines", w.Code, w.deadlines)
		}
	})
}

// TestAnswerThatIsNoJSON is a problem like any other, whose cause is in the log.
func TestAnswerThatIsNoJSON(t *testing.T) {
	var log bytes.Buffer
	p := apitest.Working()
	p.GetFn = func(id string) (core.Job, error) {
		job := apitest.QueuedJob(id)
		job.QueuedAt = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
		return job, nil
	}
	h := apitest.NewHandler(t, p, api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	_, res, body := apitest.Exchange(t, h, apitest.Ask{Method: "GET", Target: "/jobs/j"})
	got := apitest.WantProblem(t, res, body, 500, "internal", "the response cannot be encoded as JSON")
	if got.Instance != "/jobs/j" || got.RequestID != apitest.TestRequestID {
		t.Errorf("got %s", body)
	}
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "year outside of range") {
		t.Errorf("logged: %s", log.String())
	}
}

// streams are analysis types that are given piece by piece.
type streams struct {
	*apitest.MetadataMock
	pieces int
	piece  []byte
	// given counts the pieces that were taken, err is given after them.
	given atomic.Int64
	err   error
}

var _ metadata.AnalysisTypes = (*streams)(nil)

func (s *streams) stream(each func([]byte) error) error {
	for range s.pieces {
		s.given.Add(1)
		if err := each(s.piece); err != nil {
			return err
		}
	}
	return s.err
}

func (s *streams) Type(_ context.Context, _ string, _ int, _ bool, each func([]byte) error) error {
	return s.stream(each)
}

func (s *streams) List(_ context.Context, _ datamodel.AnalysisTypeQuery, _, _ bool, each func([]byte) error) error {
	return s.stream(each)
}

// TestAnalysisTypesAreStreamed: a body goes on as it is made, and no further than it is read.
func TestAnalysisTypesAreStreamed(t *testing.T) {
	at := func(s *streams) string {
		p := apitest.Working()
		s.MetadataMock = p.Metadata
		p.Types = s
		h, err := apitest.Assemble(p, api.Config{})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL
	}
	for _, path := range []string{"/schemas", "/schemas/a"} {
		ask := func(t *testing.T, s *streams, method string) (*http.Response, []byte, error) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, at(s)+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(res.Body)
			return res, body, err
		}
		piece := bytes.Repeat([]byte("1"), 10_000)
		t.Run(path+" large", func(t *testing.T) {
			res, body, err := ask(t, &streams{pieces: 100, piece: piece}, http.MethodGet)
			if err != nil || res.StatusCode != 200 || len(body) != 1_000_000 || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("got %d, %d bytes, %v", res.StatusCode, len(body), err)
			}
		})
		t.Run(path+" HEAD", func(t *testing.T) {
			s := &streams{pieces: 1_000_000, piece: piece}
			res, _, err := ask(t, s, http.MethodHead)
			if err != nil || res.StatusCode != 200 || s.given.Load() > 10 {
				t.Errorf("got %d after %d pieces, %v", res.StatusCode, s.given.Load(), err)
			}
		})
		t.Run(path+" that fails at once", func(t *testing.T) {
			s := &streams{pieces: 1, piece: piece, err: core.NewError(core.CodeUnavailable, "the store does not answer")}
			res, body, err := ask(t, s, http.MethodGet)
			var got apitest.Problem
			if err != nil || res.StatusCode != 503 || json.Unmarshal(body, &got) != nil || got.Detail != "the store does not answer" {
				t.Errorf("got %d %s, %v", res.StatusCode, body, err)
			}
		})
		t.Run(path+" that fails on its way", func(t *testing.T) {
			s := &streams{pieces: 100, piece: piece, err: errors.New("the store is gone")}
			if _, body, err := ask(t, s, http.MethodGet); err == nil {
				t.Errorf("%d bytes pass for the whole", len(body))
			}
		})
	}
}
