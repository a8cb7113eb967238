package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

const megabyte = 1_000_000

// promised is the anonymous memory that the operations guide promises with the default server.maxBytesInFlight.
const promised = 468 * megabyte

// fullVariable selects the cases that take minutes.
const fullVariable = "TUTTI_TEST_MEMORY"

// engineVariable has the URL of an Elasticsearch, which is then the index instead of the embedded one.
const engineVariable = "TUTTI_TEST_MEMORY_ENGINE"

// alias is the index, and the catalogue, of each case.
const alias = "large"

// testCase is an index of records, and how many callers read it at once.
type testCase struct {
	records, bytes, pageSize int
	// small is the number of concurrent downloads of two small columns, large that of the column with nearly all bytes.
	small, large int
	// pages is the number of concurrent GraphQL pages of whole documents, 0 for none: of 1,000, which are too many for one response, and
	// of as many as one response has.
	pages int
	shape shape
	// full is set for the cases that take long.
	full bool
}

// shape is what most bytes of a record are.
type shape int

const (
	// oneText is one text that is too long to be indexed.
	oneText shape = iota
	// values are values of one field, all different.
	values
	// files are files with ids, names, sizes and checksums, all different.
	files
)

func (s shape) String() string { return [...]string{"", " of values", " of files"}[s] }

// large returns the column that has most bytes, and which part of them it has.
func (s shape) large() (column string, share float64) {
	if s == files {
		return "files.objectId", 0.1
	}
	return "experiment.text", 0.9 // without quotes
}

func (c testCase) String() string {
	return fmt.Sprintf("%d records of %d KB%v", c.records, c.bytes/1000, c.shape)
}

// TestMemory runs each case in a process of its own, and compares its highest anonymous memory with what is promised.
func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the anonymous memory of a process is read from /proc")
	}
	t.Log("what is measured: ", figure())
	full := os.Getenv(fullVariable) == "full"
	for _, c := range []testCase{
		{records: 300, bytes: megabyte, pageSize: 100, small: 4, large: 4, pages: 16},
		{records: 1_000, bytes: megabyte, pageSize: 100, small: 4, large: 4, pages: 16, full: true},
		{records: 60, bytes: megabyte, pageSize: 100, small: 4, large: 4, shape: files},
		{records: 300, bytes: megabyte, pageSize: 100, small: 4, large: 4, shape: values, full: true},
		{records: 300, bytes: megabyte, pageSize: 100, small: 16, large: 6, shape: files, full: true},
		{records: 3_000, bytes: megabyte / 10, pageSize: 500, small: 16, large: 6, shape: values, full: true},
		{records: 3_000, bytes: megabyte / 10, pageSize: 500, small: 16, large: 6, shape: files, full: true},
		{records: 20, bytes: 20 * megabyte, pageSize: 10, small: 4, large: 6, full: true},
		{records: 60, bytes: 5 * megabyte, pageSize: 20, small: 16, large: 6, full: true},
		{records: 3_000, bytes: megabyte / 10, pageSize: 500, small: 16, large: 6, full: true},
		{records: 2_000, bytes: megabyte / 5, pageSize: 1_000, small: 16, large: 6, full: true},
	} {
		if c.full && !full {
			continue
		}
		t.Run(c.String(), func(t *testing.T) { newMeasurement(t, c).run() })
	}
}

// measurement is the run of one case.
type measurement struct {
	t      *testing.T
	c      testCase
	folder string
	yaml   string
	engine string
	child  *child
	client [2]*http.Client
}

func newMeasurement(t *testing.T, c testCase) *measurement {
	t.Helper()
	u := newUpstream(t, c)
	m := &measurement{t: t, c: c, folder: t.TempDir(), engine: os.Getenv(engineVariable)}
	if m.engine != "" {
		m.dropIndices()
		t.Cleanup(m.dropIndices)
	}
	m.yaml = fmt.Sprintf(`
server: {listen: "127.0.0.1:0"}
dataDir: %q
index: {url: %q, replicas: 0}
repositories:
  - {code: song.large, type: song, url: %q, indexName: %s, name: Large, organization: Example, country: CA, pageSize: %d}
`, m.folder, m.engine, u.URL, alias, c.pageSize)
	for i := range m.client { // two callers: one gets half of the concurrent downloads
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(i+1))}}
		m.client[i] = &http.Client{Transport: &http.Transport{DialContext: from.DialContext, DisableCompression: true}}
		t.Cleanup(m.client[i].CloseIdleConnections)
	}
	return m
}

// run measures each kind of reader after another.
func (m *measurement) run() {
	m.child = startChild(m.t, m.yaml)
	m.phase("a run of the repository", m.index)
	m.phase("a comparison", m.compare)
	m.phase("the sample of the catalogue", m.available)
	m.phase(fmt.Sprintf("%d downloads of small columns", m.c.small), func() { m.download(m.c.small, 0, `"analysisId","experiment.platform"`, "tsv") })
	column, share := m.c.shape.large()
	m.phase(fmt.Sprintf("%d downloads of the large column as TSV", m.c.large), func() { m.download(m.c.large, share, `"analysisId","`+column+`"`, "tsv") })
	m.phase(fmt.Sprintf("%d downloads of the large column as JSON", m.c.large), func() { m.download(m.c.large, share, `"`+column+`"`, "json") })
	m.phase(fmt.Sprintf("%d downloads of whole documents", m.c.large), func() { m.download(m.c.large, 0.9, ``, "jsonl") })
	m.phase("searches", m.search)
	if m.c.pages > 0 {
		m.phase(fmt.Sprintf("%d pages of 1,000 documents", m.c.pages), func() { m.pages(1000, "the response is too large") })
		m.phase(fmt.Sprintf("%d pages of 60 documents", m.c.pages), func() { m.pages(60, "") })
	}
	if m.engine != "" {
		m.phase("a rebuild", m.rebuild)
		if err := m.child.stop(); err != nil {
			m.t.Error(err)
		}
		return
	}
	m.phase("a backup", func() { m.read(m.send(0, http.MethodGet, "/backup", "")) })
	if err := m.child.stop(); err != nil {
		m.t.Error(err)
	}
	m.child = startChild(m.t, m.yaml)
	m.phase("a restart", func() { m.available(); m.search() })
	if err := m.child.stop(); err != nil {
		m.t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(m.folder, "index", "segments")); err != nil {
		m.t.Error(err)
	}
	m.child = startChild(m.t, m.yaml)
	m.phase("a restart without files of columns", func() { m.available(); m.search() })
	m.phase("a rebuild", m.rebuild)
}

// dropIndices removes the engine's indices of earlier cases.
func (m *measurement) dropIndices() {
	call := func(method, path string) []byte {
		m.t.Helper()
		req, err := http.NewRequestWithContext(context.WithoutCancel(m.t.Context()), method, m.engine+path, nil)
		if err != nil {
			m.t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			m.t.Fatal(err)
		}
		_, body := m.read(resp)
		return body
	}
	for name := range gjson.ParseBytes(call(http.MethodGet, "/_alias/"+alias+"*")).Map() {
		if strings.HasPrefix(name, alias) {
			call(http.MethodDelete, "/"+name)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// phase measures the memory while work runs.
func (m *measurement) phase(name string, work func()) {
	m.t.Helper()
	began := time.Now()
	work()
	peak := m.child.takePeak()
	m.t.Logf("%-50s peak %5d MB, bound %d MB, %v", name, peak/megabyte, promised/megabyte, time.Since(began).Round(10*time.Millisecond))
	if peak > promised || peak == 0 {
		m.t.Errorf("%s: the anonymous memory was %d MB, more than %d MB", name, peak/megabyte, promised/megabyte)
	}
}

// send sends a request as a caller, and returns its response, which must be a success.
func (m *measurement) send(caller int, method, path, body string) *http.Response {
	resp, err := m.request(caller, method, path, body)
	if err != nil {
		m.t.Fatal(err)
	}
	return resp
}

func (m *measurement) request(caller int, method, path, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(m.t.Context(), method, m.child.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := m.client[caller].Do(req)
	if err == nil && resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		_ = resp.Body.Close()
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return resp, err
}

// read reads a response to its end, and returns its length and its first bytes.
func (m *measurement) read(resp *http.Response) (n int64, head []byte) {
	n, head, err := read(resp)
	if err != nil {
		m.t.Fatal(err)
	}
	return n, head
}

func read(resp *http.Response) (n int64, head []byte, err error) {
	defer resp.Body.Close()
	var first bytes.Buffer
	if _, err = io.CopyN(&first, resp.Body, 64<<10); err == nil {
		n, err = io.Copy(io.Discard, resp.Body)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n + int64(first.Len()), first.Bytes(), err
}

func (m *measurement) index() {
	job := m.job("/index/repository/song.large")
	if n := job.Get("totals.indexed").Int(); n != int64(m.c.records) {
		m.t.Fatalf("%d records were indexed: %s", n, job.Raw)
	}
}

func (m *measurement) compare() {
	job := m.job("/index/repository/song.large?difference=true")
	if n := job.Get("totals.drift.unchanged").Int(); n != int64(m.c.records) {
		m.t.Fatalf("%d records are unchanged: %s", n, job.Raw)
	}
}

func (m *measurement) rebuild() {
	job := m.job("/index/repository/song.large?rebuild=true")
	if n := job.Get("totals.indexed").Int(); n != int64(m.c.records) {
		m.t.Fatalf("%d records were indexed: %s", n, job.Raw)
	}
}

// job starts a job and returns it when it has succeeded.
func (m *measurement) job(path string) gjson.Result {
	_, body := m.read(m.send(0, http.MethodPost, path, ""))
	id := gjson.GetBytes(body, "jobId").String()
	var job gjson.Result
	m.eventually(func() bool {
		_, body := m.read(m.send(0, http.MethodGet, "/jobs/"+id, ""))
		job = gjson.ParseBytes(body)
		state := job.Get("state").String()
		if state == "failed" || state == "partial" {
			m.t.Fatal(job.Raw)
		}
		return state == "succeeded"
	})
	return job
}

// available waits until the catalogue is available, which it is after its sample.
func (m *measurement) available() {
	m.eventually(func() bool {
		_, body := m.read(m.send(0, http.MethodGet, "/introspection", ""))
		return gjson.GetBytes(body, "catalogs."+alias+".status").String() == "available"
	})
	_, body := m.read(m.send(0, http.MethodGet, "/introspection/"+alias, ""))
	if !gjson.GetBytes(body, `fields.experiment\.platform`).Exists() {
		m.t.Errorf("the introspection of the catalogue is %.500s", body)
	}
}

// eventually polls until done returns true.
func (m *measurement) eventually(done func() bool) {
	ctx, cancel := context.WithTimeout(m.t.Context(), 10*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			m.t.Fatal(ctx.Err())
		}
	}
}

// download runs downloads at once, which must have all rows, and a share of the bytes of the records.
func (m *measurement) download(concurrent int, share float64, columns, format string) {
	body := fmt.Sprintf(`{"format":%q,"columns":[%s]}`, format, columns)
	var group sync.WaitGroup
	lengths := make([]int64, concurrent)
	for i := range concurrent {
		group.Go(func() {
			resp, err := m.request(i%2, http.MethodPost, "/"+alias+"/download", body)
			if err == nil {
				lengths[i], _, err = read(resp)
			}
			if err != nil {
				m.t.Error(err)
			}
		})
	}
	group.Wait()
	least := max(int64(m.c.records), int64(share*float64(m.c.records*m.c.bytes)))
	for _, n := range lengths {
		if n != lengths[0] || n < least {
			m.t.Errorf("the downloads have %d bytes, at least %d are expected of each", lengths, least)
			break
		}
	}
}

// pages requests pages of documents at once, which must have the documents, or the error that they are too large, or be 503 with
// Retry-After.
func (m *measurement) pages(size int, tooLarge string) {
	m.pagesOf(`{analysis{hits(first:%d){edges{node{analysisId experiment{text}}}}}}`, size, tooLarge)
}

// pagesOf is pages of a query with the number of documents as its argument.
func (m *measurement) pagesOf(query string, size int, tooLarge string) {
	body := fmt.Sprintf(`{"query":"`+query+`"}`, size)
	var group sync.WaitGroup
	var answered atomic.Int64
	for i := range m.c.pages {
		group.Go(func() {
			resp, err := m.post(i, body)
			if err != nil {
				m.t.Error(err)
				return
			}
			n, head, err := read(resp)
			later := resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != ""
			whole := resp.StatusCode == http.StatusOK && (n > int64(size*m.c.bytes) || tooLarge != "" && bytes.Contains(head, []byte(tooLarge)))
			if err != nil || !later && !whole {
				m.t.Errorf("%s, Retry-After %q, %d bytes, %v: %.300s", resp.Status, resp.Header.Get("Retry-After"), n, err, head)
			}
			if whole {
				answered.Add(1)
			}
		})
	}
	group.Wait()
	m.t.Logf("%d of %d pages of %d documents are answered, the others are to be retried", answered.Load(), m.c.pages, size)
	if answered.Load() == 0 {
		m.t.Error("no page is answered")
	}
}

// post sends an operation of GraphQL as one of the callers.
func (m *measurement) post(i int, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, m.child.url+"/"+alias+"/graphql", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return m.client[i%2].Do(req)
}

// search requests pages of documents, small columns of many and the large one of a few, and of all documents filters and facets.
func (m *measurement) search() {
	large := max(1, min(20, 40*megabyte/m.c.bytes))
	queries := []string{
		`{analysis{hits(first:100){edges{node{analysisId experiment{platform}}}}}}`,
		fmt.Sprintf(`{analysis{hits(first:%d){edges{node{experiment{text}}}}}}`, large),
		fmt.Sprintf(`{analysis{hits(first:%d,sort:[{fieldName:"analysisId"}]){edges{node{experiment{text}}}}}}`, large),
		`{analysis{hits(first:200,offset:3){edges{node{analysisId}}}}}`,
		`{analysis{hits(first:20,sort:[{fieldName:"experiment.text",order:desc}]){edges{node{analysisId}}}}}`,
		`{analysis{aggregations{experiment__text{bucket_count buckets{key doc_count}}}}}`,
		`{analysis{hits(filters:{op:"in",content:{fieldName:"experiment.text",value:["*1 *"]}}){total}}}`,
	}
	if m.c.shape == files {
		queries = append(queries,
			`{analysis{hits(first:20,sort:[{fieldName:"files.fileName"}]){edges{node{analysisId}}}}}`,
			`{analysis{aggregations{files__fileMd5sum{bucket_count buckets{key doc_count}} files__fileSize{stats{min max}}}}}`,
			`{analysis{hits(filters:{op:"in",content:{fieldName:"files.fileName",value:["*000007.bam"]}}){total}}}`)
	}
	var group sync.WaitGroup
	for i, query := range queries {
		body, err := json.Marshal(map[string]string{"query": query})
		if err != nil {
			m.t.Fatal(err)
		}
		group.Go(func() {
			resp, err := m.request(i%2, http.MethodPost, "/"+alias+"/graphql", string(body))
			if err != nil {
				m.t.Error(err)
				return
			}
			if n, head, err := read(resp); err != nil || bytes.Contains(head, []byte(`"errors"`)) {
				m.t.Errorf("%d bytes, %v: %.300s", n, err, head)
			}
		})
	}
	group.Wait()
}
