package demo_test

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/app/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRun shows the demo twice on one folder: it says when it is ready, indexes everything, reports the triggers, and
// a second run works too.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for _, run := range []string{"first", "second"} {
		t.Run(run, func(t *testing.T) {
			var out bytes.Buffer
			began := time.Now()
			err := demo.Run(t.Context(), demo.Config{
				DataDir: dir, Listen: "127.0.0.1:0", Out: &out, Logger: slog.New(slog.DiscardHandler), Once: true,
			})
			if err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			t.Logf("took %s", time.Since(began))
			for _, want := range []string{
				`tutti is ready after \d+`, `succeeded: 2000 documents in`, `succeeded: 600 documents in`,
				`changed +→ indexed after`, `unpublished +→ removed after`,
				`rejected +→ dead letter \S+ after \S+: .*analysisType`, `/dead-letters/\S+/retry`, `curl -X POST http://127\.0\.0\.1:\d+/index/repository/demo\.song`,
			} {
				if !regexp.MustCompile(want).MatchString(out.String()) {
					t.Errorf("the demo does not say %q:\n%s", want, &out)
				}
			}
			if n := strings.Count(out.String(), "→ indexed after"); n != 4 {
				t.Errorf("%d changed records were indexed, want 4", n)
			}
		})
	}
}

// TestRunInterrupted: a demo that is interrupted ends without an error.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &cancelAfter{cancel: cancel, word: "ready after"}
	err := demo.Run(ctx, demo.Config{
		DataDir: t.TempDir(), Listen: "127.0.0.1:0", Out: out, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// cancelAfter interrupts when a word is written.
type cancelAfter struct {
	cancel context.CancelFunc
	word   string
}

func (c *cancelAfter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.word)) {
		c.cancel()
	}
	return len(p), nil
}
