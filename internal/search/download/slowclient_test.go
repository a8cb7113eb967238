package download_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/search/download"
)

// clock advances only by the simulated work.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// slow is a client that reads a number of bytes per second.
type slow struct {
	*clock
	rate  int
	taken bytes.Buffer
}

// Write advances the clock.
func (s *slow) Write(b []byte) (int, error) {
	s.at = s.at.Add(time.Duration(len(b)) * time.Second / time.Duration(s.rate))
	return s.taken.Write(b)
}

// TestSlowClients: a client may be slow, and a download may take long, but a client that reads almost nothing is disconnected.
func TestSlowClients(t *testing.T) {
	const documents, size, tooSlow = 160, 40 << 10, "writing a download: the client reads it too slowly"
	const one, two = `{"columns":["tags"]}`, `{"files":[{"columns":["tags"]},{"columns":["tags"]}]}`
	docs := make([][]byte, documents)
	for i := range docs {
		docs[i] = fmt.Appendf(nil, `{"tags":"%s"}`, noise(i, size))
	}
	for name, c := range map[string]struct {
		params string
		cfg    download.Config
		rate   int
		// making is the index's time for two documents.
		making time.Duration
		whole  bool
		// most is the maximum total time.
		most time.Duration
	}{
		"fast":                         {one, download.Config{}, 10 << 20, 0, true, time.Minute},
		"at the lowest rate":           {one, download.Config{}, 32 << 10, 0, true, time.Hour},
		"a slow index":                 {one, download.Config{}, 10 << 20, time.Minute, true, 2 * time.Hour},
		"a little below":               {one, download.Config{}, 20 << 10, 0, false, 4 * time.Minute},
		"a trickle":                    {one, download.Config{}, 700, 0, false, 2 * time.Minute},
		"an archive that trickles":     {two, download.Config{}, 700, 0, false, 2 * time.Minute},
		"an archive that is taken":     {two, download.Config{}, 10 << 20, 0, true, time.Minute},
		"a trickle that is configured": {one, download.Config{MinRate: 600}, 700, 0, true, 24 * time.Hour},
		"a longer wait":                {one, download.Config{MaxWait: time.Hour}, 20 << 10, 0, true, time.Hour},
		"a shorter wait":               {one, download.Config{MaxWait: time.Second}, 20 << 10, 0, false, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			client := &slow{clock: &clock{time.Unix(0, 0)}, rate: c.rate}
			c.cfg.Now, c.cfg.MaxConcurrent, c.cfg.SpoolDir = client.now, 1, t.TempDir()
			w := newWorld(t, base+`}`, c.cfg)
			w.engine.docs = docs
			read := 0
			w.engine.before = func() {
				read++
				client.at = client.at.Add(c.making)
			}
			err := w.Download(t.Context(), "c", core.Principal{}, core.DownloadRequest{Params: []byte(c.params)},
				func(core.DownloadHead) (io.Writer, error) { return client, nil })
			if took := client.at.Sub(time.Unix(0, 0)); took > c.most {
				t.Errorf("it took %v", took)
			}
			if c.whole {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, core.CodeUnavailable, tooSlow)
			wantHint(t, err, "request fewer documents or columns at once")
			if c.params == one && read > documents/3 {
				t.Errorf("the index was read %d times", read)
			}
			w.engine.before = nil
			if err := w.ask(t.Context(), `{"columns":["_id"]}`); err != nil {
				t.Errorf("the place of the one that was broken off gave %v", err)
			}
		})
	}
	t.Run("a bad bound", func(t *testing.T) {
		for _, cfg := range []download.Config{{MaxWait: -1}, {MinRate: -1}} {
			_, err := download.New(nil, nil, cfg)
			wantError(t, err, core.CodeInvalid, "a limit of downloads must not be negative")
		}
	})
}

// noise returns a string that is hardly compressible.
func noise(seed, size int) string {
	var b strings.Builder
	state := uint64(seed)*2 + 1
	for b.Len() < size {
		state = state*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, "%016x", state)
	}
	return b.String()
}
