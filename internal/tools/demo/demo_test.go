package demo_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"tutti/internal/tools/demo"
	"tutti/internal/tools/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRun runs the demo twice on one directory: it is ready, indexes everything and reports the triggers, also in the second run.
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
				`rejected +→ dead letter \S+ after \S+: .*analysisType`, `/dead-letters/\S+/retry`, `published +→ indexed after`,
				`invalid on purpose → 400 schema.violation`, `/experiment/readLength +\S`, `/files/0/fileType +\S`, `curl -X POST http://127\.0\.0\.1:\d+/index/repository/demo\.song`,
				`files\.fileType +(\S+ \d+, ){5}\S+ \d+\n`, `experiment\.experimentalStrategy +\S+ \d+`, `larger than 30 GB: [1-9]\d+ \(`, `CRAM [3-9]\d+\.\d GB, CRAI 0\.[1-9] MB`,
				`curl -X POST http://127\.0\.0\.1:\d+/analyses/graphql`,
				`nodes +Partner 300 \(OK\), This node \d+ \(OK\)`, `studyId +.*KIDN-FR 300`,
			} {
				if !regexp.MustCompile(want).MatchString(out.String()) {
					t.Errorf("the demo does not say %q:\n%s", want, &out)
				}
			}
			if n := strings.Count(out.String(), " fetched, "); n != 2 || strings.Contains(out.String(), "\r") {
				t.Errorf("%d bars without a terminal, want the last one of 2 jobs:\n%q", n, &out)
			}
			if n := strings.Count(out.String(), "→ indexed after"); n != 8 {
				t.Errorf("%d records that changed or were published were indexed, want 8", n)
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

// cancelAfter interrupts when a given text is written.
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

// TestRunCommands: the printed commands work, in order, and the retry fixes the dead letter.
func TestRunCommands(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := demo.Run(ctx, demo.Config{
			DataDir: t.TempDir(), Listen: "127.0.0.1:0", Out: in, Logger: slog.New(slog.DiscardHandler), Command: "./tutti-1.0",
		})
		ended <- errors.Join(err, in.Close())
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testkit.HangLimit}
	command := regexp.MustCompile(`^  curl (?:-s )?(?:-X (POST|DELETE) )?'?(http://[^ ']+)'?(?: -H '([^']+): ([^']+)' -d '([^']+)')?`)
	ran, own, letter := 0, 0, ""
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Still running") {
		if strings.Contains(lines.Text(), "./tutti-1.0 ") {
			own++
		}
		m := command.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		ran++
		method := cmp.Or(m[1], http.MethodGet)
		req, err := http.NewRequestWithContext(ctx, method, m[2], strings.NewReader(m[5]))
		if err != nil {
			t.Fatal(err)
		}
		if m[3] != "" {
			req.Header.Set(m[3], m[4])
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode/100 != 2 || gjson.GetBytes(body, "errors").Exists() {
			t.Errorf("%s: %s, %v: %s", lines.Text(), resp.Status, err, body)
		}
		if method == http.MethodGet && strings.Contains(m[2], "/dead-letters/") {
			letter = m[2]
		}
	}
	if ran < 10 || own != 5 {
		t.Errorf("%d commands were found, and %d of the program", ran, own)
	}
	for status := 0; status != http.StatusNotFound; {
		resp, err := client.Get(letter)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		status = resp.StatusCode
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the dead letter stays")
		}
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
