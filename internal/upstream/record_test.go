package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
	"tutti/internal/upstream"
	"tutti/internal/upstream/lyric"
	"tutti/internal/upstream/song"
)

// slowMemory is a memory whose AcquireFor always waits.
type slowMemory struct {
	memory
	wait time.Duration
}

func (m *slowMemory) AcquireFor(ctx context.Context, holder string, n int64) (func(), error) {
	time.Sleep(m.wait)
	return m.memory.AcquireFor(ctx, holder, n)
}

// largeRecord is an upstream with one record of 300 KiB, whose id is "a". With once set it is down after the first request.
type largeRecord struct {
	requested     []time.Time
	unsized, once bool
}

func (u *largeRecord) RoundTrip(req *http.Request) (*http.Response, error) {
	u.requested = append(u.requested, time.Now())
	body := fmt.Sprintf(`{"analysisId":"a","systemId":"a","studyId":"S","organization":"S","analysisState":"PUBLISHED",`+
		`"isValid":true,"entityName":"donor","requested":%d,"x":%q}`, len(u.requested), strings.Repeat("x", 300<<10))
	res := &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}
	if u.unsized {
		res.ContentLength = -1
	}
	if u.once && len(u.requested) > 1 {
		res.StatusCode = http.StatusBadGateway
	}
	return res, nil
}

type recordClient interface {
	Record(ctx context.Context, organization, id string) (core.Record, error)
}

// newRecordClients returns the constructors of the clients that fetch single records through a Memory.
func newRecordClients() map[string]func(http.RoundTripper, core.OwnedMemory) (recordClient, error) {
	return map[string]func(http.RoundTripper, core.OwnedMemory) (recordClient, error){
		"song": func(r http.RoundTripper, m core.OwnedMemory) (recordClient, error) {
			return song.New(song.Config{Config: upstream.Config{URL: "http://h", Transport: r, Memory: m}})
		},
		"lyric": func(r http.RoundTripper, m core.OwnedMemory) (recordClient, error) {
			return lyric.New(lyric.Config{Config: upstream.Config{URL: "http://h", Transport: r, Memory: m}, CategoryID: "1", Entity: "donor"})
		},
	}
}

// TestRecordThatWaitedForMemory: a record that waits for memory for more than a second is requested again with that memory acquired,
// so that its body is recent when it is returned, even when every acquisition has to wait.
func TestRecordThatWaitedForMemory(t *testing.T) {
	for kind, newClient := range newRecordClients() {
		for name, tt := range map[string]struct {
			unsized  bool
			wait     time.Duration
			requests int
			acquired int
		}{
			"no long wait":                {wait: time.Second, requests: 1, acquired: 1},
			"long wait":                   {wait: 40 * time.Second, requests: 2, acquired: 1},
			"unknown size":                {unsized: true, wait: 40 * time.Second, requests: 4, acquired: 3},
			"several waits of one record": {unsized: true, wait: 600 * time.Millisecond, requests: 2, acquired: 3},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					u, m := &largeRecord{unsized: tt.unsized}, &slowMemory{wait: tt.wait}
					client, err := newClient(u, m)
					if err != nil {
						t.Fatal(err)
					}
					record, err := client.Record(t.Context(), "S", "a")
					if err != nil {
						t.Fatal(err)
					}
					last := len(u.requested)
					if age := time.Since(u.requested[last-1]); age > time.Second || !strings.Contains(string(record.Body), fmt.Sprintf(`"requested":%d,`, last)) {
						t.Errorf("the last of %d requests is %s old; the record begins with %.200s", last, age, record.Body)
					}
					if last != tt.requests || len(m.acquired) != tt.acquired || m.held < int64(len(record.Body)) {
						t.Errorf("%d requests, want %d; %d bytes held of %v acquired, want %d", last, tt.requests, m.held, m.acquired, tt.acquired)
					}
					record.Release()
					if m.held != 0 {
						t.Errorf("%d bytes are held at the end", m.held)
					}
				})
			})
		}
		t.Run(kind+", down when requested again", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &slowMemory{wait: time.Minute}
				client, err := newClient(&largeRecord{once: true}, m)
				if err != nil {
					t.Fatal(err)
				}
				if _, err = client.Record(t.Context(), "S", "a"); core.CodeOf(err) != core.CodeUnavailable || m.held != 0 {
					t.Errorf("%v, %d bytes are held", err, m.held)
				}
			})
		})
	}
}
