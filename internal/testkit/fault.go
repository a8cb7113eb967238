package testkit

import (
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// Fault is something that a SongServer or a LyricServer does to some of its requests instead of answering, or while it answers.
type Fault struct {
	// Path selects requests by their path as received, percent-encoding included, and query; nil selects all.
	Path *regexp.Regexp
	// Skip passes over that many selected requests first; Times is how many then fail, 0 for every one.
	Skip, Times int

	// Wait holds the request up before anything else, Release (when not nil) until it is closed. Both end when the
	// client or the server goes.
	Wait    time.Duration
	Release <-chan struct{}

	// Status, when not 0, is the answer's status, with RetryAfter as that header and ContentType and Body as its body.
	// Without a body it is Song's error document.
	Status      int
	RetryAfter  string
	Location    string
	ContentType string
	Body        string

	// Cut, when above 0, resets the connection after that many bytes of the body.
	Cut int
	// Truncate, when above 0, ends the body in good order after that many bytes, as a broken proxy would.
	Truncate int
	// StallAfter, when above 0, holds the body up after that many bytes for Wait or until Release, instead of the
	// request.
	StallAfter int
}

// faults is the list of a server's faults.
type faults struct {
	mu   sync.Mutex
	list []*armed
}

type armed struct {
	Fault
	seen int
}

// Fail adds a fault. Faults are tried in the order they were added; the first that fits is taken.
func (f *faults) Fail(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, &armed{Fault: fault})
}

// Heal removes all faults.
func (f *faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

// take returns the fault for a request, nil for none.
func (f *faults) take(path string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.list {
		if a.Path != nil && !a.Path.MatchString(path) {
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

// wait holds a request up; false says that it is over because the client or the server went.
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
	_, _ = w.Write([]byte(f.Body)) // the client may have gone
}
