package schemas_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas"
)

// fakeStore keeps analysis types in memory and counts its reads.
type fakeStore struct {
	mu    sync.Mutex
	types []datamodel.AnalysisType
	reads int
	// addErr, if set, is returned by AddAnalysisType after the type is stored, or, with unseen, before the type is visible.
	addErr error
	unseen bool
	// onRead, when set, is called once between reading a version and giving it.
	onRead func()
	// pages are the limits of the lists that were asked for; onList, when set, is called after each.
	pages  []int
	onList func()
}

var _ schemas.Store = (*fakeStore)(nil)

func (s *fakeStore) AddAnalysisType(_ context.Context, name string,
	next func(*datamodel.AnalysisType) (datamodel.AnalysisType, error),
) (datamodel.AnalysisType, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var previous *datamodel.AnalysisType
	for i := range s.types {
		if s.types[i].Name == name {
			previous = &s.types[i]
		}
	}
	t, err := next(previous)
	if err != nil {
		return t, err
	}
	if s.addErr == nil || !s.unseen {
		s.types = append(s.types, t)
	}
	return t, s.addErr
}

func (s *fakeStore) AddFirstAnalysisTypes(_ context.Context, types []datamodel.AnalysisType) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.types) > 0 {
		return false, nil
	}
	s.types = slices.Clone(types)
	return true, nil
}

func (s *fakeStore) AnalysisType(_ context.Context, name string, version int) (datamodel.AnalysisType, error) {
	found, err := datamodel.AnalysisType{}, error(core.NewError(core.CodeNotFound, "no such row"))
	s.mu.Lock()
	s.reads++
	for _, t := range slices.Backward(s.types) {
		if t.Name == name && (version == 0 || t.Version == version) {
			found, err = t, nil
			break
		}
	}
	hook := s.onRead
	s.onRead = nil
	s.mu.Unlock()
	if hook != nil {
		hook()
	}
	return found, err
}

func (s *fakeStore) ListAnalysisTypes(_ context.Context, q datamodel.AnalysisTypeQuery) ([]datamodel.AnalysisType, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = append(s.pages, q.Limit)
	all := slices.Clone(s.types)
	slices.Reverse(all)
	if s.onList != nil {
		defer s.onList()
	}
	from := min(q.Offset, len(all))
	return all[from:min(from+q.Limit, len(all))], len(all), nil
}

func (s *fakeStore) readCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

const md5 = "0123456789abcdef0123456789abcdef"

// simple is a dynamic schema that asks for nothing more than it must.
const simple = `{"type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"}}}`

func fixedNow() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC) }

func newService(t *testing.T, cfg schemas.Config) (*schemas.Service, *fakeStore) {
	t.Helper()
	store := &fakeStore{}
	if cfg.Now == nil {
		cfg.Now = fixedNow
	}
	if cfg.RetryWait == 0 {
		cfg.RetryWait = time.Millisecond
	}
	s, err := schemas.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, store
}

func register(t *testing.T, s *schemas.Service, body string) string {
	t.Helper()
	got, err := s.Register(t.Context(), []byte(body))
	if err != nil {
		t.Fatalf("Register: %v\n%+v", err, violations(err))
	}
	return string(got)
}

// analysis is a valid one of a type, with more members.
func analysis(name, more string) string {
	return `{"studyId":"S1","analysisType":{"name":"` + name + `"},"files":[` + file("a.bam", "BAM") + `],"experiment":{}` + more + `}`
}

func file(name, fileType string) string {
	return `{"dataType":"x","fileName":"` + name + `","fileSize":10,"fileType":"` + fileType + `","fileAccess":"open","fileMd5sum":"` + md5 + `"}`
}

func violations(err error) []core.Violation {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Violations
	}
	return nil
}

// lines writes violations one a line.
func lines(err error) string {
	var b strings.Builder
	for _, v := range violations(err) {
		b.WriteString(v.Pointer + " | " + v.Keyword + " | " + v.Message)
		if v.Retryable {
			b.WriteString(" | retryable")
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// wantError checks code, ErrorID and the beginning of the message.
func wantError(t *testing.T, err error, code core.Code, errorID, message string) {
	t.Helper()
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		t.Fatalf("error %v, want a core.Error", err)
	}
	if e.Code != code || e.ErrorID != errorID || !strings.HasPrefix(e.Message, message) {
		t.Errorf("error %s %s %q, want %s %s %q", e.Code, e.ErrorID, e.Message, code, errorID, message)
	}
}
