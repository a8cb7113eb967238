package why_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/report/recordtrace"
	"tutti/internal/report/why"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const version = core.Version(1763716000123456789)

// world is everything that a Tracer reads, with one record of song.ca.
type world struct {
	record    func(ctx context.Context) (core.Record, error)
	documents map[string]string
	indexErr  error
	pending   core.PendingRecord
	queueErr  error
	list      []core.Job
	jobsErr   error
	runs      map[string]core.OrganizationRun
	listed    map[string]idlist.ID // by job
	letters   map[string]core.DeadLetter
	letterErr error
	paused    []core.Pause
	released  int
	split     bool
	shared    map[string]string // the repository's parts of documents of a shared index, nil if the index is its own
	timeout   time.Duration
	// built is the study of every analysis of a built-in repository, empty for none.
	built    string
	builtErr error
	latency  time.Duration

	organizationCalls atomic.Int64
}

func (w *world) Record(ctx context.Context, _, _ string) (core.Record, error) { return w.record(ctx) }

type index struct{ *world }

func (x index) GetAll(ctx context.Context, _ string, ids []string, each func(int, core.StoredDocument, bool)) error {
	x.took(ctx)
	for i, id := range ids {
		source, found := x.documents[id]
		lend(i, id, source, found, each)
	}
	return x.indexErr
}

// lend calls each with a document that is overwritten once each has returned.
func lend(i int, id, source string, found bool, each func(int, core.StoredDocument, bool)) {
	doc := core.StoredDocument{ID: id, Version: version, Source: []byte(source), Index: "analyses-1"}
	each(i, doc, found)
	clear(doc.Source)
}

func (x index) Scan(ctx context.Context, _ string, scope core.IndexScope, _ core.Version, each func(string, core.Version) error) error {
	x.took(ctx)
	for id := range x.documents {
		if scope.Field == "recordId" && scope.Organization == "A1" {
			if err := each(id, version); err != nil {
				return err
			}
		}
	}
	return x.indexErr
}

// view is the repository's view of a shared index.
type view struct{ index }

func (v view) GetAll(_ context.Context, _ string, ids []string, each func(int, core.StoredDocument, bool)) error {
	for i, id := range ids {
		own, found := v.shared[id]
		lend(i, id, own, found, each)
	}
	return nil
}

func (v view) Same(stored, _ []byte) bool { return strings.Contains(string(stored), `"same":true`) }

// took passes the time of a call, or what ctx leaves of it.
func (w *world) took(ctx context.Context) {
	select {
	case <-time.After(w.latency):
	case <-ctx.Done():
	}
}

func (w *world) PendingRecord(ctx context.Context, _, _, _ string) (core.PendingRecord, error) {
	w.took(ctx)
	return w.pending, w.queueErr
}

func (w *world) EachChangedAfter(ctx context.Context, after uint64, each func(uint64, core.Job) error) error {
	w.took(ctx)
	for i := int(after); i < len(w.list); i++ {
		if err := each(uint64(i+1), w.list[i]); err != nil {
			return err
		}
	}
	return w.jobsErr
}

type lists struct{ *world }

func (l lists) Find(_ context.Context, jobID, organization, id string) (idlist.ID, error) {
	listed, ok := l.listed[jobID]
	if !ok || organization != "S1" || listed.ID != id {
		return idlist.ID{}, core.NewError(core.CodeNotFound, "no such id")
	}
	return listed, nil
}

func (w *world) Organization(ctx context.Context, jobID, _ string) (core.OrganizationRun, error) {
	w.took(ctx)
	if err := ctx.Err(); err != nil {
		return core.OrganizationRun{}, err
	}
	w.organizationCalls.Add(1)
	run, ok := w.runs[jobID]
	if !ok {
		return run, core.NewError(core.CodeNotFound, "no such organization")
	}
	return run, nil
}

func (w *world) Find(ctx context.Context, _, _, id string) (core.DeadLetter, error) {
	w.took(ctx)
	l, ok := w.letters[id]
	if !ok && w.letterErr == nil {
		return l, core.NewError(core.CodeNotFound, "no such dead letter")
	}
	return l, w.letterErr
}

const (
	body    = `{ "studyId":"S1", "state":"PUBLISHED", "n":1.0 }`
	block   = `[{"code":"song.ca"}]`
	current = `{"repositories":` + block + `, "studyId":"S1", "state":"PUBLISHED", "n":1.0 }`
	sum     = "6b15c4b131d98d7c8219acf0a3690e3c448a118f159b9bc8e8b862d7351b493d"
)

func (w *world) FindRecords(_ context.Context, id string) ([]core.DeadLetter, error) {
	if l, ok := w.letters[id]; ok {
		return []core.DeadLetter{l}, w.letterErr
	}
	return nil, w.letterErr
}

// newWorld returns a world whose record is published and in the index.
func newWorld() *world {
	w := &world{documents: map[string]string{"A1": current}}
	w.returns(core.Record{ID: "A1", Organization: "S1", State: "PUBLISHED", Indexable: true, Body: []byte(body)}, nil)
	return w
}

func (w *world) returns(rec core.Record, err error) {
	w.record = func(ctx context.Context) (core.Record, error) {
		w.took(ctx)
		rec.Release = func() { w.released++ }
		return rec, err
	}
}

func (w *world) trace(t *testing.T, restricted bool) recordtrace.Trace {
	t.Helper()
	return record(t, w.tracer(), restricted)
}

// record returns the trace of the record.
func record(t *testing.T, tracer *why.Tracer, restricted bool) recordtrace.Trace {
	t.Helper()
	got, err := tracer.Trace(t.Context(), recordRef(t, "A1"), restricted)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (w *world) tracer() *why.Tracer {
	return why.New([]why.Repository{w.repository()}, w.config())
}

func (w *world) repository() why.Repository {
	r := why.Repository{
		Repository: core.Repository{Code: "song.ca", IndexName: "analyses", Fields: core.RecordFields{ID: "recordId", Organization: "studyId", State: "state"}},
		Upstream:   w, States: []string{"PUBLISHED"},
	}
	if w.split {
		r.Split = func(rec core.Record, each func(string, []byte) error) error {
			for _, id := range []string{"f1", "f2"} {
				if err := each(id, rec.Body); err != nil {
					return err
				}
			}
			return nil
		}
	} else {
		r.Document = func(dst []byte, rec core.Record) []byte {
			return append(append(dst, `{"repositories":`+block+`,`...), rec.Body[1:]...)
		}
	}
	if w.shared != nil {
		r.Shared = view{index{w}}
	}
	return r
}

func (w *world) config() why.Config {
	return why.Config{
		Index: index{w}, Queue: w, Jobs: w, Lists: lists{w}, DeadLetters: w, Paused: func() []core.Pause { return w.paused }, Timeout: w.timeout,
	}
}

// TestTraceCurrent: the record, its hash and its document are named, and the memory of the record is released.
func TestTraceCurrent(t *testing.T) {
	w := newWorld()
	got := w.trace(t, false)
	expected, at := true, time.Unix(0, int64(version)).UTC()
	want := []recordtrace.Document{{
		ID: "A1", Stored: true, Expected: &expected, Version: version, WrittenFor: &at, PhysicalIndex: "analyses-1", State: "PUBLISHED",
		SHA256: sum, Bytes: len(body), ExpectedSHA256: sum, Comparison: recordtrace.ComparisonEqual, Content: recordtrace.ComparisonEqual,
	}}
	if diff := cmp.Diff(want, got.Index.Documents); diff != "" {
		t.Error(diff)
	}

	if u := got.Upstream; u.Status != recordtrace.StatusFound || u.State != "PUBLISHED" || u.Bytes != len(body) || u.SHA256 != sum {
		t.Errorf("upstream: %+v", u)
	}
	if got.Index.Status != recordtrace.StatusPresent || got.Index.Alias != "analyses" || got.Index.Comparison != recordtrace.ComparisonEqual {
		t.Errorf("index: %+v", got.Index)
	}
	if got.Queue.Status != recordtrace.StatusNone || got.Jobs.Status != recordtrace.StatusNone || got.DeadLetters.Status != recordtrace.StatusNone {
		t.Errorf("%+v", got)
	}
	if w.released != 1 || !strings.HasPrefix(got.Next, "nothing to do") {
		t.Errorf("released %d times; %s", w.released, got.Next)
	}
}

// TestTraceCompare: documents are compared by their values, with and without the repositories block; their hashes are those of their
// bytes without it.
func TestTraceCompare(t *testing.T) {
	const equal, differs, unknown = recordtrace.ComparisonEqual, recordtrace.ComparisonDiffers, recordtrace.ComparisonUnknown
	const other = `[{"code":"song.ca","country":"CA"}]`
	for stored, want := range map[string]struct {
		comparison, content recordtrace.Comparison
		sameHash            bool
	}{
		current: {equal, equal, true},
		`{ "n":1.0, "repositories":` + block + `,"state":"PUBLISHED", "studyId":"S1" }`:   {equal, equal, false},
		`{"repositories":` + other + `, "studyId":"S1", "state":"PUBLISHED", "n":1.0 }`:   {differs, equal, true},
		`{ "studyId":"S1", "state":"PUBLISHED" ,"repositories" :` + other + `, "n":1.0 }`: {differs, equal, true},
		`{ "studyId":"S1", "state":"PUBLISHED", "n":1.0, "repositories":` + other + ` }`:  {differs, equal, true},
		body: {differs, equal, true},
		`{"repositories":` + block + `,"studyId":"S1","state":"PUBLISHED","n":1}`:         {differs, differs, false},
		`{"repositories":` + block + `,"studyId":"S1","state":"PUBLISHED","n":1.0,"b":0}`: {differs, differs, false},
		`{"studyId":"S1","n":`: {unknown, unknown, false},
	} {
		w := newWorld()
		w.documents["A1"] = stored
		got := w.trace(t, false)
		d := got.Index.Documents[0]
		if got.Index.Comparison != want.comparison || d.Content != want.content || (d.SHA256 == got.Upstream.SHA256) != want.sameHash || d.ExpectedSHA256 != sum {
			t.Errorf("%s: %s %+v, want %+v", stored, got.Index.Comparison, d, want)
		}
		const note = "the index holds the newest state, but with another repositories block"
		if strings.HasPrefix(got.Next, note) != (want.comparison == differs && want.content == equal) {
			t.Errorf("%s: %s", stored, got.Next)
		}
	}
}

// TestTraceShared: of an index that is shared, the repository's part is compared, and the hash and the state are of the document that all
// repositories see, without what tutti adds to it.
func TestTraceShared(t *testing.T) {
	const stored = `{"_tutti":{"scope":["song.ca"]},"repositories":` + block + `, "studyId":"S1", "state":"PUBLISHED", "n":1.0 }`
	for name, tt := range map[string]struct {
		own, stored         string
		status              string
		comparison, content recordtrace.Comparison
	}{
		"current": {`{"studyId":"S1","same":true}`, stored, recordtrace.StatusPresent, recordtrace.ComparisonEqual, recordtrace.ComparisonEqual},
		"of another record": {
			`{"studyId":"S1","same":true}`, strings.Replace(stored, "1.0", "2.0", 1), recordtrace.StatusPresent, recordtrace.ComparisonEqual, recordtrace.ComparisonDiffers,
		},
		"older":              {`{"studyId":"S1"}`, strings.Replace(stored, "1.0", "2.0", 1), recordtrace.StatusPresent, recordtrace.ComparisonDiffers, recordtrace.ComparisonDiffers},
		"only of the others": {"", stored, recordtrace.StatusAbsent, recordtrace.ComparisonDiffers, recordtrace.ComparisonDiffers},
		"other organization": {`{"studyId":"S2"}`, stored, recordtrace.StatusOther, recordtrace.ComparisonDiffers, recordtrace.ComparisonDiffers},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.shared, w.documents["A1"] = map[string]string{}, tt.stored
			if tt.own != "" {
				w.shared["A1"] = tt.own
			}
			got := w.trace(t, false).Index
			d := got.Documents[0]
			if got.Status != tt.status || d.Comparison != tt.comparison || d.Content != tt.content || d.Stored != (tt.status == recordtrace.StatusPresent) {
				t.Errorf("%s %+v", got.Status, d)
			}
			if same := d.SHA256 == sum; same != (tt.content == recordtrace.ComparisonEqual) || d.Stored != (d.State == "PUBLISHED") {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestTraceUpstream: what the upstream returns has a status, and documents without a record differ.
func TestTraceUpstream(t *testing.T) {
	other := core.WrapError(core.CodeUpstream, "other", core.ErrOtherOrganization)
	tooLarge := core.Record{ID: "A1", Organization: "S1", Indexable: true, TooLarge: &core.DeadLetterDocument{Size: 9, SHA256: "ab"}}
	for name, tt := range map[string]struct {
		rec        core.Record
		err        error
		restricted bool
		want       string
		compare    recordtrace.Comparison
	}{
		"excluded":              {core.Record{ID: "A1", Organization: "S1", State: "UNPUBLISHED", Body: []byte("{}")}, nil, false, recordtrace.StatusExcluded, recordtrace.ComparisonDiffers},
		"rule":                  {core.Record{ID: "A1", Organization: "S1", State: "PUBLISHED", Excluded: &core.Exclusion{List: "donors", ID: "DO1"}, Body: []byte("{}")}, nil, false, recordtrace.StatusExcluded, recordtrace.ComparisonDiffers},
		"absent":                {core.Record{}, core.WrapError(core.CodeAbsent, "absent", core.ErrRecordAbsent), false, recordtrace.StatusAbsent, recordtrace.ComparisonDiffers},
		"other organization":    {core.Record{}, other, false, recordtrace.StatusOther, recordtrace.ComparisonDiffers},
		"of other organization": {core.Record{ID: "A1", Organization: "S2", Indexable: true}, nil, false, recordtrace.StatusOther, recordtrace.ComparisonDiffers},
		"hidden organization":   {core.Record{}, other, true, recordtrace.StatusAbsent, recordtrace.ComparisonDiffers},
		"another record":        {core.Record{ID: "B", Organization: "S1"}, nil, false, recordtrace.StatusError, recordtrace.ComparisonUnknown},
		"too large":             {tooLarge, nil, false, recordtrace.StatusTooLarge, recordtrace.ComparisonUnknown},
		"error":                 {core.Record{}, core.NewError(core.CodeUnavailable, "refused"), false, recordtrace.StatusError, recordtrace.ComparisonUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.returns(tt.rec, tt.err)
			got := w.trace(t, tt.restricted)
			if got.Upstream.Status != tt.want || got.Index.Comparison != tt.compare {
				t.Errorf("upstream %+v, comparison %s", got.Upstream, got.Index.Comparison)
			}
			if got.Upstream.ExcludedBy != tt.rec.Excluded {
				t.Errorf("the rule is %v, want %v", got.Upstream.ExcludedBy, tt.rec.Excluded)
			}
			if got.Index.Status != recordtrace.StatusPresent {
				t.Errorf("index: %+v", got.Index)
			}
		})
	}
}

// TestTraceOtherDocument: a document of another organization or repository is not the record's, and hidden from restricted callers.
func TestTraceOtherDocument(t *testing.T) {
	for _, source := range []string{`{"studyId":"S2"}`, `{"studyId":"S1","repositories":[{"code":"song.us"}]}`} {
		for restricted, want := range map[bool]string{false: recordtrace.StatusOther, true: recordtrace.StatusAbsent} {
			w := newWorld()
			w.documents["A1"] = source
			got := w.trace(t, restricted).Index
			if got.Status != want || got.Documents[0].Stored || got.Documents[0].Version != 0 {
				t.Errorf("%s, restricted %t: %+v", source, restricted, got)
			}
		}
	}
}

// TestTraceParts: an error of one part does not affect the others.
func TestTraceParts(t *testing.T) {
	down := core.NewError(core.CodeUnavailable, "does not answer")
	for name, fail := range map[string]func(*world){
		"upstream": func(w *world) { w.returns(core.Record{}, down) },
		"index":    func(w *world) { w.indexErr = down },
		"queue":    func(w *world) { w.queueErr = down },
		"jobs":     func(w *world) { w.jobsErr = down },
		"letters":  func(w *world) { w.letterErr = down },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			fail(w)
			got := w.trace(t, false)
			for part, p := range map[string]recordtrace.Part{
				"upstream": got.Upstream.Part, "index": got.Index.Part, "queue": got.Queue.Part, "jobs": got.Jobs.Part,
				"letters": got.DeadLetters.Part,
			} {
				if failed := p.Status == recordtrace.StatusError; failed != (part == name) || failed && p.Error != "does not answer" {
					t.Errorf("%s: %+v", part, p)
				}
			}
		})
	}
}

// TestTraceTimeout: a part that does not answer ends after its own timeout, with an error that names it.
func TestTraceTimeout(t *testing.T) {
	w := newWorld()
	w.timeout = 20 * time.Millisecond
	w.record = func(ctx context.Context) (core.Record, error) {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > w.timeout {
			t.Errorf("the call ends at %s", end)
		}
		<-ctx.Done()
		return core.Record{}, errors.New("internal text")
	}
	got := w.trace(t, false)
	if got.Upstream.Status != recordtrace.StatusUnknown || got.Upstream.Error != "no answer within 20ms" || got.Upstream.TookMillis < 20 || got.Index.Status != recordtrace.StatusPresent {
		t.Errorf("%+v", got)
	}
}

// TestTraceConcurrent: the parts are read at the same time, those that depend on the record's documents after it.
func TestTraceConcurrent(t *testing.T) {
	for split, want := range map[bool]time.Duration{false: 2 * time.Second, true: 3 * time.Second} { // the run is read after the list of jobs
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.split, w.latency, w.timeout = split, time.Second, time.Minute
			w.list = []core.Job{{ID: "1", Repository: "song.ca", Scope: core.ScopeRepository, State: core.JobFailed}}
			began := time.Now()
			w.trace(t, false)
			if took := time.Since(began); took != want {
				t.Errorf("with several documents %t: it took %s, want %s", split, took, want)
			}
		})
	}
}

// TestTraceOtherDocuments: how many documents another organization's record has is hidden from restricted callers, the number of their own
// is not.
func TestTraceOtherDocuments(t *testing.T) {
	for organization, visible := range map[string]bool{"S1": true, "S2": false} {
		w := newWorld()
		w.split = true
		w.returns(core.Record{}, core.NewError(core.CodeAbsent, "absent"))
		w.documents = make(map[string]string)
		for i := range 150 {
			w.documents[fmt.Sprint("f", i)] = fmt.Sprintf(`{"studyId":%q}`, organization)
		}
		if got := w.trace(t, false).Index; !got.Truncated {
			t.Errorf("of %s: %+v", organization, got)
		}
		if got := w.trace(t, true).Index; got.Truncated != visible || (len(got.Documents) == 100) != visible {
			t.Errorf("of %s, restricted: %d documents, truncated %t", organization, len(got.Documents), got.Truncated)
		}
	}
}

// TestTraceSplit: of a record with several documents, missing, current and surplus ones are listed, with their dead letters.
func TestTraceSplit(t *testing.T) {
	w := newWorld()
	w.split = true
	w.documents = map[string]string{"f1": body, "f3": `{"studyId":"S1"}`}
	w.letters = map[string]core.DeadLetter{
		"f2": {ID: "L2", RecordID: "f2", Reason: core.ReasonRejected, Attempts: 4, Request: &core.Request{Organization: "S1"}},
	}
	got := w.trace(t, false)
	var lines []string
	for _, d := range got.Index.Documents {
		line := d.ID + " " + string(d.Comparison)
		if d.Stored {
			line += " stored"
		}
		if *d.Expected {
			line += " expected"
		}
		lines = append(lines, line)
	}
	if diff := cmp.Diff([]string{"f1 equal stored expected", "f2 differs expected", "f3 differs stored"}, lines); diff != "" {
		t.Error(diff)
	}
	if got.Index.Comparison != recordtrace.ComparisonDiffers || len(got.DeadLetters.Letters) != 1 || got.DeadLetters.Letters[0].Attempts != 4 {
		t.Errorf("%+v", got)
	}
	w.letters["f2"] = core.DeadLetter{ID: "L2", Request: &core.Request{Organization: "S2"}}
	if got := w.trace(t, true); len(got.DeadLetters.Letters) != 0 {
		t.Errorf("a restricted caller sees %+v", got.DeadLetters)
	}
}

// TestTraceQueue: the pending request, the batches and the pause are named.
func TestTraceQueue(t *testing.T) {
	w := newWorld()
	w.pending = core.PendingRecord{Batches: 3, Request: &core.Request{Kind: core.KindIndex, Cause: core.CauseKafka, Attempts: 2}}
	w.paused = []core.Pause{{Repository: "other", Reason: "no"}, {Repository: "song.ca", Reason: "closed"}}
	q := w.trace(t, false).Queue
	if q.Status != recordtrace.StatusPending || q.Batches != 3 || q.Request.Cause != core.CauseKafka || q.Request.Attempts != 2 || q.Paused != "closed" {
		t.Errorf("%+v", q)
	}
}

// TestTraceJobs: only runs that cover the organization are named, and of those that ended the newest that has read it.
func TestTraceJobs(t *testing.T) {
	job := func(id string, scope core.Scope, organization string, state core.JobState) core.Job {
		return core.Job{ID: id, Repository: "song.ca", Scope: scope, Organization: organization, State: state}
	}
	w := newWorld()
	w.list = []core.Job{
		job("9", core.ScopeOrganization, "S2", core.JobRunning),
		job("89", core.ScopeRetry, "", core.JobRunning), // of dead letters
		job("8", core.ScopeRepository, "", core.JobRunning),
		job("7", core.ScopeRepository, "", core.JobFailed), // failed before the organization
		job("6", core.ScopeOrganization, "S2", core.JobSucceeded),
		job("5", core.ScopeRepository, "", core.JobPartial),
		job("4", core.ScopeOrganization, "S1", core.JobSucceeded),
		job("3", core.ScopeOrganization, "S1", core.JobQueued),
		{ID: "99", Repository: "song.us", Scope: core.ScopeOrganization, Organization: "S1", State: core.JobRunning},
	}
	w.runs = map[string]core.OrganizationRun{"5": {State: core.JobSucceeded}, "4": {State: core.JobSucceeded}, "6": {}, "9": {}, "99": {}}
	got := w.trace(t, false).Jobs
	if len(got.InProgress) != 2 || got.InProgress[0].ID != "8" || got.InProgress[1].ID != "3" {
		t.Errorf("in progress: %+v", got.InProgress)
	}
	if last := got.LastEnded; last == nil || last.ID != "5" || last.State != core.JobPartial || last.OrganizationState != core.JobSucceeded {
		t.Errorf("last ended: %+v", last)
	}
	got = w.trace(t, true).Jobs
	if got.InProgress[0].ID != "" || got.InProgress[1].ID != "3" || got.LastEnded.ID != "" {
		t.Errorf("a restricted caller sees %+v", got)
	}
	guard := &core.JobError{Code: core.JobErrorManyInvalid}
	for want, tt := range map[string]struct {
		job *core.JobError
		run core.OrganizationRun
	}{
		core.JobErrorManyInvalid: {guard, core.OrganizationRun{State: core.JobSucceeded}}, // of the whole repository
		"":                       {guard, core.OrganizationRun{State: core.JobSucceeded, Swept: true}},
		core.JobErrorPruneGuard:  {guard, core.OrganizationRun{State: core.JobPartial, Swept: true, Error: &core.JobError{Code: core.JobErrorPruneGuard}}},
	} {
		w.list[5].Error, w.runs["5"] = tt.job, tt.run
		if last := w.trace(t, false).Jobs.LastEnded; last == nil || last.ErrorCode != want {
			t.Errorf("%+v: last ended %+v, want %q", tt.run, last, want)
		}
	}
}

// TestTraceLists: jobs over lists of ids count if they name the record and, once they have ended, have processed it.
func TestTraceLists(t *testing.T) {
	job := func(id, organization string, state core.JobState) core.Job {
		return core.Job{ID: id, Repository: "song.ca", Scope: core.ScopeIDs, Organization: organization, State: state}
	}
	w := newWorld()
	w.list = []core.Job{
		job("1", "S1", core.JobPartial), job("2", "", core.JobPartial), job("3", "S1", core.JobCancelled), job("4", "S1", core.JobSucceeded),
		job("5", "", core.JobRunning), job("6", "S1", core.JobRunning), job("7", "S2", core.JobRunning), job("8", "S1", core.JobRunning),
	}
	w.listed = map[string]idlist.ID{
		"1": {ID: "A1", Outcome: idlist.Indexed}, "2": {ID: "A1", Outcome: idlist.DeadLettered}, "3": {ID: "A1"}, "4": {ID: "B"},
		"5": {ID: "A1"}, "6": {ID: "A1", Outcome: idlist.Indexed}, "7": {ID: "A1"}, "8": {ID: "B"},
	}
	got := w.trace(t, false).Jobs
	if p := got.InProgress; len(p) != 2 || p[0].ID != "6" || p[0].Outcome != idlist.Indexed || p[1].ID != "5" || p[1].Outcome != idlist.Queued {
		t.Errorf("in progress: %+v", p)
	}
	if last := got.LastEnded; last == nil || last.ID != "2" || last.Scope != core.ScopeIDs || last.Outcome != idlist.DeadLettered {
		t.Errorf("last ended: %+v", last)
	}
	if got = w.trace(t, true).Jobs; got.InProgress[0].ID != "6" || got.InProgress[1].ID != "" || got.LastEnded.ID != "" {
		t.Errorf("a restricted caller sees %+v", got)
	}
	w.listed["2"] = idlist.ID{ID: "A1", Outcome: idlist.Mismatch}
	for restricted, want := range map[bool]idlist.Outcome{false: idlist.Mismatch, true: idlist.Removed} {
		if last := w.trace(t, restricted).Jobs.LastEnded; last.Outcome != want {
			t.Errorf("restricted %t: last ended %+v, want outcome %s", restricted, last, want)
		}
	}
	w.documents = nil
	if next, want := w.trace(t, false).Next, "a job over a list of ids with this one is in progress (running); follow it with: tutti jobs show 5 --watch"; next != want {
		t.Errorf("next: %s, want %s", next, want)
	}
}

// TestTraceEndedJobs: what jobs did that ended a while ago is read once, and for an organization's state in a running job nothing waits
// long.
func TestTraceEndedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		old, lately := time.Now().Add(-2*time.Minute), time.Now().Add(-30*time.Second)
		job := func(id string, state core.JobState, ended *time.Time) core.Job {
			return core.Job{ID: id, Repository: "song.ca", Scope: core.ScopeRepository, State: state, EndedAt: ended}
		}
		w.list = []core.Job{
			job("1", core.JobSucceeded, &old), job("2", core.JobFailed, &old), job("3", core.JobCancelled, &lately), job("4", core.JobRunning, nil),
		}
		w.runs = map[string]core.OrganizationRun{"1": {State: core.JobPartial}, "4": {State: core.JobPaused}}
		tracer := w.tracer()
		check := func(calls int64, last, organization string) {
			t.Helper()
			before := w.organizationCalls.Load()
			got := record(t, tracer, false).Jobs
			if got.LastEnded == nil || got.LastEnded.ID != last || len(got.InProgress) != 1 || string(got.InProgress[0].OrganizationState) != organization {
				t.Errorf("%+v", got)
			}
			if n := w.organizationCalls.Load() - before; n != calls {
				t.Errorf("%d organizations were read, want %d", n, calls)
			}
		}
		check(4, "1", "paused")
		check(2, "1", "paused") // of 3 and 4
		w.runs["3"] = core.OrganizationRun{}
		check(2, "3", "paused")
		if got := record(t, tracer, true).Jobs; got.LastEnded.ID != "" {
			t.Errorf("a restricted caller sees %+v", got.LastEnded)
		}
		time.Sleep(time.Minute)
		check(2, "3", "paused")
		check(1, "3", "paused")
		w.latency = 500 * time.Millisecond
		began := time.Now()
		check(0, "3", "")
		if took := time.Since(began); took != 550*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
}

// TestTraceJobsShared: concurrent traces share reads of the jobs, each sees what was stored before its call, and only what has changed
// is read again.
func TestTraceJobsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.returns(core.Record{}, core.NewError(core.CodeAbsent, "absent"))
		jobs := &slowJobs{world: w}
		tracer := why.New([]why.Repository{{Repository: core.Repository{Code: "song.ca"}, Upstream: w}}, why.Config{
			Index: index{w}, Queue: w, Jobs: jobs, Lists: lists{w}, DeadLetters: w, Paused: func() []core.Pause { return nil },
		})
		newest := func() string {
			got, err := tracer.Trace(t.Context(), recordRef(t, "A1"), false)
			if err != nil || len(got.Jobs.InProgress) == 0 {
				t.Errorf("%+v %v", got.Jobs, err)
				return ""
			}
			if n := len(got.Jobs.InProgress); n != len(w.list)-1 {
				t.Errorf("%d jobs in progress of %d", n, len(w.list))
			}
			return got.Jobs.InProgress[0].ID
		}
		add := func(id string, state core.JobState) {
			w.list = append(w.list, core.Job{ID: id, Repository: "song.ca", Scope: core.ScopeOrganization, Organization: "S1", State: state})
		}
		add("a", core.JobRunning)
		add("0", core.JobFailed)
		var traces sync.WaitGroup
		for range 20 {
			traces.Go(func() { newest() })
		}
		traces.Wait()
		if jobs.reads != 2 || jobs.calls != 2 {
			t.Errorf("%d reads of %d jobs for 20 traces", jobs.reads, jobs.calls)
		}
		add("b", core.JobRunning)
		if id := newest(); id != "b" || jobs.reads != 3 || jobs.calls != 3 {
			t.Errorf("a later trace saw job %s, after %d reads of %d jobs", id, jobs.reads, jobs.calls)
		}
	})
}

// slowJobs counts reads, and the jobs that they returned.
type slowJobs struct {
	*world
	reads, calls int
}

func (s *slowJobs) EachChangedAfter(ctx context.Context, after uint64, each func(uint64, core.Job) error) error {
	s.reads++
	time.Sleep(100 * time.Millisecond)
	return s.world.EachChangedAfter(ctx, after, func(revision uint64, job core.Job) error {
		s.calls++
		return each(revision, job)
	})
}

// TestTraceErrors: an unknown repository is an error of the call.
func TestTraceErrors(t *testing.T) {
	tracer := why.New(nil, why.Config{})
	if _, err := tracer.Trace(t.Context(), recordRef(t, "A1"), false); core.CodeOf(err) != core.CodeNotFound {
		t.Error(err)
	}
}

// recordRef returns the RecordRef of a record of S1 in song.ca.
func recordRef(t *testing.T, id string) core.RecordRef {
	t.Helper()
	ref, err := core.NewRecordRef("song.ca", "S1", id)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// measuredIndex measures the heap after it has read all documents.
type measuredIndex struct {
	index
	heap *uint64
}

func (x measuredIndex) GetAll(ctx context.Context, alias string, ids []string, each func(int, core.StoredDocument, bool)) error {
	err := x.index.GetAll(ctx, alias, ids, each)
	var now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&now)
	*x.heap = now.HeapAlloc
	return err
}

// TestTraceLargeDocuments: of a record with many large documents, few are kept, and all have their hashes and states.
func TestTraceLargeDocuments(t *testing.T) {
	const documents, size = 100, 2 << 20
	w := newWorld()
	w.split = true
	large := `{"studyId":"S1","state":"PUBLISHED","text":"` + strings.Repeat("x", size) + `"}`
	w.documents = map[string]string{}
	for i := range documents {
		w.documents[fmt.Sprint("g", i)] = large
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var heap uint64
	cfg := w.config()
	cfg.Index = measuredIndex{index{w}, &heap}
	got := record(t, why.New([]why.Repository{w.repository()}, cfg), false)
	if more := int64(heap) - int64(before.HeapAlloc); more > 48<<20 {
		t.Errorf("%d MiB are kept of %d MiB", more>>20, documents*size>>20)
	}
	hash := sha256.Sum256([]byte(large))
	stored := 0
	for _, d := range got.Index.Documents {
		if d.Stored {
			stored++
			if d.Bytes != len(large) || d.SHA256 != hex.EncodeToString(hash[:]) || d.State != "PUBLISHED" || d.Comparison != recordtrace.ComparisonDiffers {
				t.Fatalf("%+v", d)
			}
		}
	}
	if stored != documents-2 { // two more are expected and missing
		t.Errorf("%d documents are stored", stored)
	}
}
