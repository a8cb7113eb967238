package testkit

import (
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// Fault is a failure that a SongServer or a LyricServer injects into some of its responses.
type Fault struct {
	// Path selects requests by their path as received, with percent-encoding, and query; nil selects all, without those for schemas if
	// Skip or Times is set.
	Path *regexp.Regexp
	// Skip is the number of selected requests that succeed first; Times is how many then fail, 0 for all.
	Skip, Times int

	// Wait delays the request by a time, Release, if not nil, until the channel is closed. Both end when the client disconnects or the
	// server closes.
	Wait    time.Duration
	Release <-chan struct{}

	// Status, when not 0, is the response's status, with RetryAfter as its header and ContentType and Body. Without a body the response
	// is Song's error document.
	Status      int
	RetryAfter  string
	Location    string
	ContentType string
	Body        string

	// Cut, when above 0, resets the connection after that many bytes of the body.
	Cut int
	// Truncate, when above 0, ends the body properly after that many bytes, like a broken proxy.
	Truncate int
	// StallAfter, when above 0, delays the body after that many bytes for Wait or until Release, instead of the request.
	StallAfter int
}

// schemasPath matches the path of Song's list of schemas.
var schemasPath = regexp.MustCompile(`/schemas(\?|$)`)

// faults is the list of a server's faults.
type faults struct {
	mu   sync.Mutex
	list []*armed
}

type armed struct {
	Fault
	seen int
}

// Fail adds a fault. Faults are tried in the order they were added; the first that matches applies.
func (f *faults) Fail(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, &armed{Fault: fault})
}

// ClearFaults removes all faults.
func (f *faults) ClearFaults() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

// take returns the fault for a request, nil for none.
func (f *faults) take(path string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.list {
		if a.Path != nil && !a.Path.MatchString(path) || a.Path == nil && a.Skip+a.Times > 0 && schemasPath.MatchString(path) {
			continue
		}
		a.seen++
		if a.seen > a.Skip && (a.Times == 0 || a.seen <= a.Skip+a.Times) {
			fault := a.Fault
			return &fault
		}
	}
	return nil
}

// wait delays a request; it reports false when the client disconnected or the server closes.
func (f *Fault) wait(r *http.Request, closing <-chan struct{}) bool {
	var after <-chan time.Time
	if f.Wait > 0 {
		timer := time.NewTimer(f.Wait)
		defer timer.Stop()
		after = timer.C
	}
	if after == nil && f.Release == nil {
		return true
	}
	select {
	case <-after:
		return true
	case <-f.Release:
		return true
	case <-r.Context().Done():
		return false
	case <-closing:
		return false
	}
}

// answer writes the fault's own status.
func (f *Fault) answer(w http.ResponseWriter) {
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	if f.Location != "" {
		w.Header().Set("Location", f.Location)
	}
	if f.ContentType != "" {
		w.Header().Set("Content-Type", f.ContentType)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(f.Body)))
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body)) // the client may have disconnected
}
