package records

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/command"
)

// eventStream answers every call with one event of a job, which is the last that it says.
type eventStream string

func (s eventStream) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: &eventBody{Reader: strings.NewReader("id: 1\nevent: job\ndata: " + string(s) + "\n\n"), ctx: r.Context().Done()},
	}, nil
}

type eventBody struct {
	io.Reader
	ctx <-chan struct{}
}

func (b *eventBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == nil {
		return n, nil
	}
	<-b.ctx
	return 0, context.Canceled
}

func (*eventBody) Close() error { return nil }

// TestWaitTimeout: the reason of a pause is printed at once; when the timeout is over, the error says it too.
func TestWaitTimeout(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second // less than between two lines of totals
	for name, tt := range map[string]struct {
		job, output    string
		stderr, report string
	}{
		"paused": {
			`{"id":"j1","repository":"song","indexName":"a","state":"running","paused":"the mapping is wrong"}`, command.OutputText,
			"job j1, song to a: running\npaused: the mapping is wrong\n",
			"tutti: job j1 has not ended after 2s; its last state is running, paused: the mapping is wrong\n",
		},
		"paused, as JSON": {
			`{"id":"j1","repository":"song","indexName":"a","state":"running","paused":"the mapping is wrong"}`, command.OutputJSON, "",
			"tutti: job j1 has not ended after 2s; its last state is running, paused: the mapping is wrong\n",
		},
		"not paused": {
			`{"id":"j1","repository":"song","indexName":"a","state":"queued"}`, command.OutputText,
			"job j1, song to a: queued\n", "tutti: job j1 has not ended after 2s; its last state is queued\n",
		},
		"no news": {"{", command.OutputText, "", "tutti: job j1 has not ended after 2s; its state was not received\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, err := client.New(client.Config{HTTP: &http.Client{Transport: eventStream(tt.job)}})
				if err != nil {
					t.Fatal(err)
				}
				var stdout, stderr, complaint strings.Builder
				cmd := &cobra.Command{}
				cmd.SetContext(t.Context())
				cmd.SetOut(&stdout)
				cmd.SetErr(&stderr)
				begin, ended := time.Now(), make(chan error)
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				go func() { ended <- waitForJob(ctx, cmd, c, &command.Remote{Output: tt.output}, "j1", timeout) }()
				synctest.Wait()
				if got := stderr.String(); got != tt.stderr || time.Since(begin) != 0 {
					t.Errorf("at once: %q", got)
				}
				code := command.Report(&complaint, <-ended)
				const hint = "       the job continues; tutti jobs show j1 --watch follows it, tutti jobs cancel j1 ends it\n"
				if code != command.ExitFailed || complaint.String() != tt.report+hint || stdout.String() != "" || time.Since(begin) != timeout {
					t.Errorf("code %d after %s: %q, stdout %q", code, time.Since(begin), complaint.String(), stdout.String())
				}
			})
		})
	}
}

// silent is a server that takes requests and never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestWaitTimeoutBoundsTheRequest: the timeout of waiting begins with the request.
func TestWaitTimeoutBoundsTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := client.New(client.Config{HTTP: &http.Client{Transport: silent{}}})
		if err != nil {
			t.Fatal(err)
		}
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		begin := time.Now()
		err = index(cmd, c, &command.Remote{Output: command.OutputText}, indexFlags{wait: true, timeout: 3 * time.Second}, []string{"song"})
		const want = "the server did not answer within 3s"
		if took := time.Since(begin); took != 3*time.Second || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
