package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/core"
)

// ExampleClient_WatchJob waits for a job.
func ExampleClient_WatchJob() {
	server := httptest.NewServer(http.HandlerFunc(exampleAnswer))
	defer server.Close()
	c, err := client.New(client.Config{Server: server.URL, HTTP: server.Client()})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	accepted, err := c.Index(ctx, client.RunOptions{}, "song.collab")
	if err != nil {
		fmt.Println(core.MessageOf(err), core.HintOf(err))
		return
	}
	job, err := c.WatchJob(ctx, accepted.JobID, func(e client.Event) error {
		if e.Organization != nil {
			fmt.Println(e.Organization.Organization, e.Organization.State)
		}
		return nil
	})
	fmt.Println(job.State, job.Totals.Indexed, err)
	// Output:
	// S1 succeeded
	// succeeded 9 <nil>
}

func exampleAnswer(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost:
		answer(w, http.StatusAccepted, "application/json", `{"successful":true,"jobId":"j1"}`)
	case strings.HasSuffix(r.URL.Path, "/events"):
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(w, http.StatusOK, "application/json", `{"id":"j1","state":"succeeded","totals":{"indexed":9},"organizations":[{"organization":"S1","state":"succeeded"}]}`)
	}
}
