package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// memory records what is acquired and how much is held.
type memory struct {
	acquired []int64
	holders  []string
	held     int64
	refuse   error
}

func (m *memory) AcquireFor(_ context.Context, holder string, n int64) (func(), error) {
	if m.refuse != nil {
		return nil, m.refuse
	}
	m.acquired, m.holders = append(m.acquired, n), append(m.holders, holder)
	m.held += n
	return func() {
		m.held -= n
		n = 0
	}, nil
}

// TestLargeRecordsTakeMemory: a scanner acquires the memory beyond its own buffer first, while it holds no other, and releases it as
// soon as the record was passed on; the memory of a single record is released by its owner.
func TestLargeRecordsTakeMemory(t *testing.T) {
	t.Parallel()
	large := `{"analysisId":"b","x":"` + strings.Repeat("x", 3<<20) + `"}`
	page := `{"analyses":[{"analysisId":"a"},` + large + `,{"analysisId":"c"}],"totalAnalyses":3}`
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	m := &memory{}
	client, err := upstream.NewClient(upstream.Config{URL: server.URL, Memory: m, Repository: "song.ca"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	get := func(text string) *upstream.Response {
		body = text
		answer, err := client.Get(t.Context(), "", "x")
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	answer := get(page)
	var held []int64
	_, err = upstream.NewScanner(shape(), 0).Page(answer, func(upstream.Item) error {
		held = append(held, m.held)
		return nil
	})
	const grown = 4 << 20
	if d := cmp.Diff([]int64{0, grown, 0}, held); err != nil || d != "" {
		t.Errorf("%v; bytes held with each record (-want +got):\n%s", err, d)
	}
	if !slices.Equal(m.acquired, []int64{128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20}) {
		t.Errorf("acquired were %v", m.acquired)
	}
	answer.Close()

	m.acquired = nil
	answer = get(large)
	if _, err = upstream.NewScanner(shape(), 0).Record(answer, answer.Length); err != nil {
		t.Error(err)
	}
	release := answer.DetachMemory()
	answer.Close()
	if strings.Join(slices.Compact(m.holders), ",") != "song.ca" {
		t.Errorf("the memory was acquired for %v", m.holders)
	}
	if want := int64(len(large)) + 1; m.held != want || !slices.Equal(m.acquired, []int64{want}) {
		t.Errorf("%d bytes are held of %v acquired, want %d", m.held, m.acquired, want)
	}
	release()

	answer = get(large)
	if _, err = upstream.NewScanner(shape(), 1<<20).Record(answer, answer.Length); err != nil || m.held != 0 {
		t.Errorf("%v; %d bytes are held of a record over the limit", err, m.held)
	}
	answer.Close()
	m.refuse = core.NewError(core.CodeOverloaded, "no memory")
	answer = get(page)
	defer answer.Close()
	_, err = upstream.NewScanner(shape(), 0).Page(answer, func(upstream.Item) error { return nil })
	if core.CodeOf(err) != core.CodeOverloaded || m.held != 0 {
		t.Errorf("without memory the page ended with %v and %d bytes held", err, m.held)
	}
}
