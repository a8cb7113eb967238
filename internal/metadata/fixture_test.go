package metadata_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// S is the study of most tests.
const S = "PACA-CA"

// validator knows one type, "variantCall", whose latest version is 3.
type validator struct {
	mu   sync.Mutex
	seen []string
	// before, when set, is called first with each analysis; its error is returned.
	before func(ctx context.Context, analysis string) error
	// latest is the version that analyses to publish must have at least.
	latest int
}

func (v *validator) Validate(ctx context.Context, _, analysis string) (datamodel.AnalysisTypeRef, error) {
	v.mu.Lock()
	v.seen = append(v.seen, analysis)
	before := v.before
	v.mu.Unlock()
	if before != nil {
		if err := before(ctx, analysis); err != nil {
			return datamodel.AnalysisTypeRef{}, err
		}
	}
	doc := gjson.Parse(analysis)
	if !gjson.Valid(analysis) || doc.Get("studyId").Type != gjson.String || doc.Get("analysisType.name").Str != "variantCall" {
		return datamodel.AnalysisTypeRef{}, &core.Error{Code: core.CodeInvalid, ErrorID: "schema.violation", Message: "not valid"}
	}
	if version := doc.Get("analysisType.version"); version.Exists() && version.Int() != 3 {
		return datamodel.AnalysisTypeRef{}, &core.Error{Code: core.CodeConflict, ErrorID: "analysis.type.incorrect.version", Message: "not the latest"}
	}
	return datamodel.AnalysisTypeRef{Name: "variantCall", Version: 3}, nil
}

func (v *validator) last() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen[len(v.seen)-1]
}

func (v *validator) calls() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.seen)
}

func (v *validator) CheckVersion(_ context.Context, ref datamodel.AnalysisTypeRef) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.latest > ref.Version {
		return &core.Error{Code: core.CodeConflict, ErrorID: "analysis.type.incorrect.version", Message: "not the latest"}
	}
	return nil
}

// clock returns times a second apart.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
	return c.now
}

// fixture is a repository with the study S, on one of the databases.
type fixture struct {
	*metadata.Repository
	t         *testing.T
	store     *store.Store
	validator *validator
}

// on runs suite on every database.
func on(t *testing.T, suite func(t *testing.T, w *fixture)) {
	t.Helper()
	onWith(t, metadata.Config{}, suite)
}

func onWith(t *testing.T, cfg metadata.Config, suite func(t *testing.T, w *fixture)) {
	t.Helper()
	storetest.Databases(t, func(t *testing.T, s *store.Store) { suite(t, newFixture(t, s, cfg)) })
}

func newFixture(t *testing.T, s *store.Store, cfg metadata.Config) *fixture {
	t.Helper()
	w := &fixture{t: t, store: s, validator: &validator{}}
	var err error
	if w.Repository, err = metadata.New(s, w.validator, cfg); err != nil {
		t.Fatal(err)
	}
	if err := w.CreateStudy(t.Context(), datamodel.Study{ID: S, Name: "Pancreatic Cancer"}); err != nil && core.CodeOf(err) != core.CodeConflict {
		t.Fatal(err)
	}
	return w
}

// payload returns a submission with a file for each name; the MD5 sum depends on the name.
func payload(names ...string) string {
	files := make([]string, len(names))
	for i, name := range names {
		files[i] = fileJSON(name, sum(name))
	}
	return `{"studyId":"` + S + `","analysisType":{"name":"variantCall"},"files":[` + strings.Join(files, ",") +
		`],"experiment":{"tool":"Sanger","ratio":1.50}}`
}

func fileJSON(name, md5 string) string {
	return fmt.Sprintf(`{"fileName":%q,"fileSize":1e3,"fileType":"VCF","fileMd5sum":%q,"fileAccess":"open","dataType":"SNV"}`, name, md5)
}

func sum(name string) string { return fmt.Sprintf("%032x", name)[:32] }

// submit adds an analysis with one file.
func (w *fixture) submit(name string) string {
	w.t.Helper()
	id, err := w.Submit(w.t.Context(), S, []byte(payload(name)), false)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// published adds and publishes n analyses with numbered file names.
func (w *fixture) published(n int) []string {
	w.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = w.submit(fmt.Sprintf("file-%05d", i))
		w.set(ids[i], datamodel.StatePublished)
	}
	return ids
}

func (w *fixture) set(id string, state datamodel.AnalysisState) {
	w.t.Helper()
	if err := w.SetState(w.t.Context(), S, id, state, false); err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) body(id string) string {
	w.t.Helper()
	a, err := w.Analysis(w.t.Context(), S, id)
	if err != nil {
		w.t.Fatal(err)
	}
	if !json.Valid(a.Body) || a.ID != id || a.Study != S || gjson.GetBytes(a.Body, "analysisState").Str != string(a.State) {
		w.t.Fatalf("analysis %s is inconsistent: %+v %s", id, a, a.Body)
	}
	return string(a.Body)
}

func (w *fixture) get(id, path string) string { return gjson.Get(w.body(id), path).String() }

// seed writes n published analyses directly into the tables, which is faster than submitting them.
func seed(t testing.TB, s *store.Store, n int) {
	t.Helper()
	err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for i := range n {
			id := fmt.Sprintf("seed-%07d", i)
			body := fmt.Sprintf(`{"analysisId":%q,"studyId":%q,"analysisState":"PUBLISHED","createdAt":"x","updatedAt":"x",`+
				`"analysisStateHistory":[],"analysisType":{"name":"variantCall","version":3},"padding":%q}`, id, S, strings.Repeat("x", 1800))
			_, err := tx.ExecContext(ctx, "INSERT INTO analysis (id, study, state, type_name, type_version, updated_at, body) VALUES ($1, $2, $3, $4, $5, $6, $7)",
				id, S, "PUBLISHED", "variantCall", 3, 1, []byte(body))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pending returns the number of events in the outbox.
func (w *fixture) pending() int {
	w.t.Helper()
	n, err := w.Pending(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// drain relays all events and returns them.
func (w *fixture) drain() []datamodel.Change {
	w.t.Helper()
	var all []datamodel.Change
	for {
		given, err := w.Relay(w.t.Context(), 100, func(_ context.Context, changes []datamodel.Change) []error {
			all = append(all, changes...)
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if given == 0 {
			return all
		}
	}
}

// wantError compares an error's code, id and message.
func wantError(t *testing.T, err error, code core.Code, errorID, message string) {
	t.Helper()
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		t.Fatalf("got %v, want %s %s", err, code, errorID)
	}
	got := core.Error{Code: e.Code, ErrorID: e.ErrorID, Message: e.Message}
	if got.Code != code || got.ErrorID != errorID || got.Message != message {
		t.Errorf("got %s %s %q, want %s %s %q", got.Code, got.ErrorID, got.Message, code, errorID, message)
	}
}

func wantEqual(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
