package indexing_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
	"tutti/internal/tools/testkit"
)

func TestJobEventsResume(t *testing.T) {
	running := []core.JobChange{apitest.JobChange(2, core.JobRunning), apitest.RunChange(3, "B", 10), apitest.RunChange(5, "A", 20)}
	final := []core.JobChange{apitest.RunChange(3, "B", 10), apitest.JobChange(4, core.JobFailed), apitest.RunChange(5, "A", 20)}
	for name, tt := range map[string]struct {
		there  []core.JobChange
		header http.Header
		query  string
		status int
		want   []string
	}{
		"from the start": {running, nil, "", 200, []string{"3 organization B running 10", "5 organization A running 20", "5 job  running 30"}},
		"zero":           {running, nil, "?lastEventId=0", 200, []string{"3 organization B running 10", "5 organization A running 20", "5 job  running 30"}},
		"empty":          {running, nil, "?lastEventId=", 200, []string{"3 organization B running 10", "5 organization A running 20", "5 job  running 30"}},
		"header":         {running, http.Header{"Last-Event-Id": {"3"}}, "", 200, []string{"5 organization A running 20", "5 job  running 30"}},
		"query":          {running, nil, "?lastEventId=3", 200, []string{"5 organization A running 20", "5 job  running 30"}},
		"header wins":    {running, http.Header{"Last-Event-Id": {"3"}}, "?lastEventId=1", 200, []string{"5 organization A running 20", "5 job  running 30"}},
		"up to date":     {running, nil, "?lastEventId=5", 200, []string{"5 job  running 30"}},
		"never given":    {running, nil, "?lastEventId=6", 200, []string{"3 organization B running 10", "5 organization A running 20", "5 job  running 30"}},
		"final":          {final, nil, "?lastEventId=3", 200, []string{"3 organization A running 20", "5 job  failed 999", "5 end  failed 0"}},
		"final, newer":   {final, nil, "?lastEventId=4", 200, []string{"4 organization A running 20", "5 job  failed 999", "5 end  failed 0"}},
		"final, known":   {final, nil, "?lastEventId=5", 204, nil},
		"final, beyond":  {final, http.Header{"Last-Event-Id": {"18446744073709551615"}}, "", 204, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := apitest.NewChanges(tt.there...)
				s := apitest.Open(t, apitest.NewHandler(t, apitest.Watching(c), api.Config{}), "GET", "/jobs/job-1/events"+tt.query, tt.header)
				synctest.Wait()
				apitest.WantEvents(t, s.Text(), tt.want...)
				if s.W.Code != tt.status {
					t.Errorf("got %d", s.W.Code)
				}
				if final := len(tt.there) > 0 && tt.there[1].Job != nil; s.Ended() != final {
					t.Errorf("ended: %t", s.Ended())
				}
				s.Cancel()
				<-c.Gone
				<-s.Done
			})
		})
	}
}

// TestResumingLosesNothing cuts streams of random jobs anywhere and goes on with the last id that was read. In the end
// the client must know the newest state of everything.
func TestResumingLosesNothing(t *testing.T) {
	for seed := range uint64(testkit.Cases(40)) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { cutAndResume(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func cutAndResume(t *testing.T, random *rand.Rand) {
	history := []core.JobChange{apitest.JobChange(1, core.JobRunning)}
	truth := map[string]int64{}
	end := 5 + random.IntN(20)
	for i := range end + random.IntN(3) { // some change after the job is final
		revision := uint64(2*i + 3)
		if i == end {
			history = append(history, apitest.JobChange(revision, core.JobPartial))
			continue
		}
		name := string(rune('A' + random.IntN(5)))
		history = append(history, apitest.RunChange(revision, name, int64(i)))
		truth[name] = int64(i)
	}
	if end == len(history)-1 {
		history = append(history, apitest.JobChange(uint64(2*end+3), core.JobPartial))
	}
	known := map[string]int64{}
	var last uint64
	state := core.JobQueued
	seen := 0 // how much of the history had happened when a stream began
	for connections := 0; ; connections++ {
		if connections > 100 {
			t.Fatal("the job never ends")
		}
		// Who gave an id knew all up to it; an even one stands before the job's end.
		for seen == 0 || seen < len(history) && history[seen].Revision <= last+1 {
			seen++
		}
		seen += random.IntN(len(history) - seen + 1)
		body, status := oneConnection(t, random, history, seen, last)
		if status == 204 && seen == len(history) {
			break
		}
		events := apitest.ReadEvents(t, body)
		if connections < 3 {
			events = events[:random.IntN(len(events)+1)]
		}
		ended := false
		for _, e := range events {
			if e.ID < last {
				t.Fatalf("id %d after %d", e.ID, last)
			}
			last = e.ID
			var d struct {
				Organization string
				State        core.JobState
				Totals       core.Totals
			}
			if err := json.Unmarshal([]byte(e.Data), &d); err != nil {
				t.Fatal(err)
			}
			switch e.Name {
			case indexing.EventOrganization:
				known[d.Organization] = d.Totals.Fetched
			case indexing.EventJob:
				state = d.State
			case indexing.EventEnd:
				ended = true
			}
		}
		if ended && seen == len(history) {
			break
		}
	}
	if state != core.JobPartial {
		t.Errorf("the client was not told the end: %s", state)
	}
	if diff := cmp.Diff(truth, known); diff != "" {
		t.Errorf("truth, known: %s", diff)
	}
}

// oneConnection follows a job of whose history the first there changes have happened, the rest while it is open.
func oneConnection(t *testing.T, random *rand.Rand, history []core.JobChange, there int, last uint64) (string, int) {
	t.Helper()
	newest := map[string]core.JobChange{}
	for _, ch := range history[:there] {
		name := ""
		if ch.Run != nil {
			name = ch.Run.Organization
		}
		newest[name] = ch
	}
	now := slices.SortedFunc(maps.Values(newest), func(a, b core.JobChange) int { return int(a.Revision) - int(b.Revision) })
	c := apitest.NewChanges(now...)
	s := apitest.Open(t, apitest.NewHandler(t, apitest.Watching(c), api.Config{}), "GET", "/jobs/job-1/events",
		http.Header{"Last-Event-Id": {strconv.FormatUint(last, 10)}})
	for _, ch := range history[there:] {
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		select {
		case c.Later <- ch:
		case <-c.Gone:
		}
	}
	<-s.Done
	return s.Text(), s.W.Code
}
