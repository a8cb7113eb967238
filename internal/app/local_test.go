package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/store"
)

// builtInCode is the code of the built-in metadata repository, as it is without any configuration.
const builtInCode = "local"

// plainType is the body of POST /schemas for an analysis type that accepts any experiment.
const plainType = `{"name":"plain","schema":{"type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"}}}}`

// builtIn is a world whose tutti has only the built-in metadata repository.
type builtIn struct {
	*world
	// token is sent with each request, "" for none.
	token string
	// store is the URL of a PostgreSQL, "" for SQLite in the world's folder.
	store string
	// submissions numbers what is submitted, so that no two files are the same.
	submissions atomic.Int64
}

// plan says how the tutti of a built-in world is configured beside its addresses. Zero values are the program's defaults.
type plan struct {
	set settings
	// defaults configures no repository, so that the default one is used.
	defaults bool
	// repository is more YAML of the repository, server further keys of server with a comma before each, more further top-level
	// keys.
	repository, server, more string
	store                    string
}

// newBuiltIn returns a world whose tutti is not started.
func newBuiltIn(t *testing.T, p plan) *builtIn {
	t.Helper()
	p.set.configuration = p.yaml
	b := &builtIn{world: newWorld(t, p.set), store: p.store}
	if p.defaults {
		b.alias = "analyses"
	}
	return b
}

// startBuiltIn returns a world whose tutti is started, with a study S1 and the analysis type plain.
func startBuiltIn(t *testing.T, p plan) *builtIn {
	t.Helper()
	b := newBuiltIn(t, p)
	b.startReady()
	b.prepareStudies("S1")
	return b
}

// startReady starts the world's tutti and waits until its index takes writes.
func (b *builtIn) startReady() {
	b.t.Helper()
	b.start()
	b.awaitPaused(false)
}

func (p plan) yaml(w *world) string {
	text := fmt.Sprintf(`
server: {listen: "127.0.0.1:0", shutdownTimeout: %s, maxBodyBytes: %d%s}
dataDir: %q
log: {level: debug}
queue: {url: %q, maxPending: %d}
index: {url: %q, replicas: 0, maxRecordBytes: %d}
store: {url: %q}
`, w.set.shutdownTimeout, w.set.maxBodyBytes, p.server, w.dir, w.set.queueURL, w.set.maxPending, w.engine.url(),
		w.set.maxRecordBytes, p.store)
	if !p.defaults {
		text += fmt.Sprintf("repositories:\n  - code: %s\n    type: local\n    indexName: %s\n    pageSize: %d\n%s",
			builtInCode, w.alias, w.set.pageSize, indent(p.repository))
	}
	return text + p.more
}

// prepareStudies adds studies, and the analysis type plain.
func (b *builtIn) prepareStudies(studies ...string) {
	b.t.Helper()
	b.mustSend(http.MethodPost, "/schemas", plainType, http.StatusOK)
	for _, study := range studies {
		b.mustSend(http.MethodPost, "/studies/"+study, "", http.StatusOK)
	}
}

// send sends a request with a body, "" for none, and the world's token.
func (b *builtIn) send(method, path, body string) (answer, error) {
	return b.sendAs(b.token, method, path, body)
}

func (b *builtIn) sendAs(token, method, path, body string) (answer, error) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(b.t.Context()), method, b.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, raw: raw}, err
}

// mustSend sends a request, and fails the test unless the answer has a status.
func (b *builtIn) mustSend(method, path, body string, status int) answer {
	b.t.Helper()
	return b.mustSendAs(b.token, method, path, body, status)
}

func (b *builtIn) mustSendAs(token, method, path, body string, status int) answer {
	b.t.Helper()
	a, err := b.sendAs(token, method, path, body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	if a.status != status {
		b.t.Fatalf("%s %s %.200s: status %d, want %d: %s", method, path, body, a.status, status, a.raw)
	}
	return a
}

// payload returns a new analysis of type plain; members are added to its experiment, such as `"a":1`.
func (b *builtIn) payload(study, members string) string {
	n := b.submissions.Add(1)
	if members != "" {
		members = "," + members
	}
	return fmt.Sprintf(`{"studyId":%q,"analysisType":{"name":"plain"},"experiment":{"number":%d%s},"files":[{"dataType":"reads",`+
		`"fileName":"reads-%d.bam","fileSize":%d,"fileType":"BAM","fileAccess":"open","fileMd5sum":"%032x"}]}`, study, n, members, n, n, n)
}

func analysisPath(study, id string) string {
	return "/studies/" + study + "/analysis/" + url.PathEscape(id)
}

// statePath is the path that publishes, unpublishes or suppresses.
func statePath(study, verb, id string) string {
	return "/studies/" + study + "/analysis/" + verb + "/" + id
}

// submit submits an analysis and returns its id.
func (b *builtIn) submit(study string) string {
	b.t.Helper()
	return b.mustSend(http.MethodPost, "/submit/"+study, b.payload(study, ""), http.StatusOK).get("analysisId").String()
}

func (b *builtIn) publish(study, id string) {
	b.t.Helper()
	b.mustSend(http.MethodPut, statePath(study, "publish", id), "", http.StatusOK)
}

// storedAnalyses returns the bodies of all analyses in some states by id, as GET …/paginated lists them, in pages of 100.
func (b *builtIn) storedAnalyses(states string) map[string]string {
	b.t.Helper()
	all := map[string]string{}
	for _, study := range b.mustSend(http.MethodGet, "/studies/all", "", http.StatusOK).get("@this").Array() {
		for offset := 0; ; {
			page := b.mustSend(http.MethodGet, fmt.Sprintf("/studies/%s/analysis/paginated?analysisStates=%s&limit=100&offset=%d",
				study, states, offset), "", http.StatusOK)
			for _, a := range page.get("analyses").Array() {
				id := a.Get("analysisId").String()
				if _, twice := all[id]; twice {
					b.t.Fatalf("%s is listed twice", id)
				}
				all[id] = a.Raw
			}
			rows := int(page.get("currentTotalAnalyses").Int())
			if offset += rows; rows == 0 || offset >= int(page.get("totalAnalyses").Int()) {
				break
			}
		}
	}
	return all
}

// everyState are all states of analyses, as a query parameter.
const everyState = "UNPUBLISHED,PUBLISHED,SUPPRESSED"

// documents returns every document of the index by id, as the analyses' own bytes: the repositories, which must be
// only the built-in one, are removed.
func (b *builtIn) documents() map[string]string {
	b.t.Helper()
	return ownBytes(b.t, b.engine.documents(b.world), map[string]string{
		"code": builtInCode, "name": "", "organization": "", "country": "", "url": "", "type": "local",
	})
}

// ownBytes removes the repositories, which must be only block, from documents.
func ownBytes(t *testing.T, documents map[string][]byte, block map[string]string) map[string]string {
	t.Helper()
	own := make(map[string]string, len(documents))
	for id, source := range documents {
		rest, found := bytes.CutPrefix(source, []byte(spliced))
		decoder := json.NewDecoder(bytes.NewReader(rest))
		var got []map[string]string
		if err := decoder.Decode(&got); err != nil || !found {
			t.Fatalf("document %q does not begin with its repositories: %v: %.200s", id, err, source)
		}
		if diff := cmp.Diff([]map[string]string{block}, got); diff != "" {
			t.Fatalf("repositories of %q (-want +got):\n%s", id, diff)
		}
		own[id] = "{" + strings.TrimPrefix(string(rest[decoder.InputOffset():]), ",")
	}
	return own
}

// awaitConverged waits until the index holds exactly the published analyses, byte for byte.
func (b *builtIn) awaitConverged() {
	b.t.Helper()
	b.eventually(wait, func() (bool, string) {
		fault := difference(b.storedAnalyses("PUBLISHED"), b.documents())
		return fault == "", fault
	})
}

// wantConverged fails the test unless it does now.
func (b *builtIn) wantConverged() {
	b.t.Helper()
	if fault := difference(b.storedAnalyses("PUBLISHED"), b.documents()); fault != "" {
		b.t.Fatal(fault)
	}
}

// runLocal runs over a study, or the repository for "", and fails the test unless the job ends in a state.
func (b *builtIn) runLocal(study, query string, state core.JobState) gjson.Result {
	b.t.Helper()
	path := "/index/repository/" + builtInCode
	if study != "" {
		path += "/organization/" + study
	}
	id := b.mustSend(http.MethodPost, path+query, "", http.StatusAccepted).get("jobId").String()
	var job gjson.Result
	b.eventually(wait, func() (bool, string) {
		job = gjson.ParseBytes(b.mustSend(http.MethodGet, "/jobs/"+id, "", http.StatusOK).raw)
		return core.JobState(job.Get("state").String()).Final(), job.Raw
	})
	if job.Get("state").String() != string(state) {
		b.t.Fatalf("job ended %s, want %s: %s", job.Get("state"), state, job.Raw)
	}
	return job
}

// wantNoDeadLetters fails the test if there is a dead letter.
func (b *builtIn) wantNoDeadLetters() {
	b.t.Helper()
	letters, _, err := b.app.Queue().DeadLetters().List(b.t.Context(), core.DeadLetterFilter{Limit: 10})
	if err != nil || len(letters) != 0 {
		b.t.Errorf("dead letters: %+v, %v", letters, err)
	}
}

// takes is a Validator that accepts every analysis.
type takes struct{}

// Validate returns the type that the analysis names.
func (takes) Validate(_ context.Context, _, analysis string) (datamodel.AnalysisTypeRef, error) {
	return datamodel.AnalysisTypeRef{Name: gjson.Get(analysis, "analysisType.name").String(), Version: 1}, nil
}

// CheckVersion accepts every version.
func (takes) CheckVersion(context.Context, datamodel.AnalysisTypeRef) error { return nil }

// changeWithoutEvents calls change with the repository of a world whose tutti is stopped, and deletes the events of the changes.
func (b *builtIn) changeWithoutEvents(change func(ctx context.Context, r *metadata.Repository)) {
	b.t.Helper()
	b.storeOf(func(ctx context.Context, s *store.Store) {
		r, err := metadata.New(s, takes{}, metadata.Config{})
		if err != nil {
			b.t.Fatal(err)
		}
		change(ctx, r)
		if err := s.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM outbox")
			return err
		}); err != nil {
			b.t.Fatal(err)
		}
	})
}

// storeOf opens the store of a world whose tutti is stopped.
func (b *builtIn) storeOf(use func(ctx context.Context, s *store.Store)) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.t.Context()), wait)
	defer cancel()
	cfg := store.Config{URL: b.store}
	if cfg.URL == "" {
		cfg.Dir = filepath.Join(b.dir, "store")
	}
	s, err := store.Open(ctx, cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() {
		if err := s.Close(ctx); err != nil {
			b.t.Errorf("closing the store: %v", err)
		}
	}()
	use(ctx, s)
}

// addAnalyses submits n analyses to a study of a repository, publishes all but every seventh, and returns the ids of
// the published and of the others.
func (b *builtIn) addAnalyses(ctx context.Context, r *metadata.Repository, study string, n int) (published, others []string) {
	b.t.Helper()
	if err := r.CreateStudy(ctx, datamodel.Study{ID: study}); err != nil {
		b.t.Fatal(err)
	}
	ids, errs := make([]string, n), make([]error, n)
	var g sync.WaitGroup
	for i := range n {
		g.Go(func() { // at once, so that they are synced together
			if ids[i], errs[i] = r.Submit(ctx, study, []byte(b.payload(study, "")), false); errs[i] != nil || i%7 == 0 {
				return
			}
			errs[i] = r.SetState(ctx, study, ids[i], datamodel.StatePublished, false)
		})
	}
	g.Wait()
	for i, id := range ids {
		if errs[i] != nil {
			b.t.Fatal(errs[i])
		}
		if i%7 == 0 {
			others = append(others, id)
		} else {
			published = append(published, id)
		}
	}
	return published, others
}

// TestBuiltInSeed: with schemas.seed a new store has Song's analysis types, and another start adds none.
func TestBuiltInSeed(t *testing.T) {
	t.Parallel()
	b := newBuiltIn(t, plan{more: "schemas: {seed: song}\n"})
	for range 2 {
		b.start()
		got := b.mustSend(http.MethodGet, "/schemas?hideSchema=true", "", http.StatusOK)
		if names := gjson.GetBytes(got.raw, "resultSet.#.name").Raw + gjson.GetBytes(got.raw, "resultSet.#.version").Raw; names != `["sequencingRead","variantCall"][1,1]` {
			t.Errorf("%s", got.raw)
		}
		b.stop()
	}
}

// TestNotIndexed: the console says if no repository indexes the analyses of a study, and says nothing if one does.
func TestNotIndexed(t *testing.T) {
	t.Parallel()
	const said = "No index gets these analyses"
	w := startWorld(t, settings{})
	w.mustRequest(http.MethodPost, "/studies/S1", http.StatusOK)
	if page := w.mustRequest(http.MethodGet, "/console/studies/S1", http.StatusOK); !strings.Contains(string(page.raw), said) {
		t.Errorf("without a repository of type local: %s", page.raw)
	}
	b := newBuiltIn(t, plan{})
	b.start()
	b.mustSend(http.MethodPost, "/studies/S1", "", http.StatusOK)
	if page := b.mustSend(http.MethodGet, "/console/studies/S1", "", http.StatusOK); strings.Contains(string(page.raw), said) {
		t.Errorf("with one: %s", page.raw)
	}
}
