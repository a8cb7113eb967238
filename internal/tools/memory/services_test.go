//go:build services

package memory_test

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
)

// TestMemoryOfElasticsearch measures the readers of a real Elasticsearch whose memory GraphQL reserves: pages of large documents, whether
// they are written while they are read or kept until the end, and facets of many values.
func TestMemoryOfElasticsearch(t *testing.T) {
	url := os.Getenv("TUTTI_TEST_ELASTICSEARCH_URL")
	if url == "" {
		t.Fatal("TUTTI_TEST_ELASTICSEARCH_URL is not set; deploy/local/engine/start prints it")
	}
	t.Setenv(engineVariable, url)
	t.Log("what is measured: ", figure())
	t.Run("documents", func(t *testing.T) {
		m := newMeasurement(t, testCase{records: 300, bytes: megabyte, pageSize: 100, pages: 16})
		m.child = startChild(t, m.yaml)
		m.phase("a run of the repository", m.index)
		m.phase("a comparison", m.compare)
		m.available()
		m.phase("16 pages of 1,000 documents", func() { m.pages(1000, "the response is too large") })
		m.phase("16 pages of 60 documents", func() { m.pages(60, "") })
		m.phase("16 pages of 1,000 documents that are kept", func() { m.pagesOf(keptPage, 1000, "the documents of the result are larger than") })
		m.phase("16 pages of 50 documents that are kept", func() { m.pagesOf(keptPage, 50, "") })
		if err := m.child.stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("values", func(t *testing.T) {
		m := newMeasurement(t, testCase{records: 4, bytes: megabyte, pageSize: 4, shape: values})
		m.child = startChild(t, m.yaml)
		m.phase("a run of the repository", m.index)
		m.available()
		m.phase("16 facets of 90,000 values", func() { m.facets(16) })
		if err := m.child.stop(); err != nil {
			t.Error(err)
		}
	})
}

// keptPage is a page whose documents are selected twice, so that they are not written while they are read.
const keptPage = `{analysis{hits(first:%d){edges{node{analysisId}} also:edges{node{experiment{text}}}}}}`

// facets requests all values of the large field at once, which must be returned, or be 503 with Retry-After, or have the error
// that the search, which waits for memory, took too long.
func (m *measurement) facets(concurrent int) {
	const body = `{"query":"{analysis{aggregations{experiment__text{bucket_count buckets(max:300000){key doc_count}}}}}"}`
	var group sync.WaitGroup
	answered := make([]bool, concurrent)
	for i := range concurrent {
		group.Go(func() {
			resp, err := m.post(i, body)
			if err != nil {
				m.t.Error(err)
				return
			}
			n, head, err := read(resp)
			later := resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "" || bytes.Contains(head, []byte("search timed out after"))
			answered[i] = resp.StatusCode == http.StatusOK && n > megabyte
			if err != nil || !later && !answered[i] {
				m.t.Errorf("%s, %d bytes, %v: %.300s", resp.Status, n, err, head)
			}
		})
	}
	group.Wait()
	m.t.Log("answered: ", answered)
	if !slices.Contains(answered, true) {
		m.t.Error("no facet is answered")
	}
}
