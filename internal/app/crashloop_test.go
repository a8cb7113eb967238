package app_test

import (
	"fmt"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// TestCrashLoop: one record ends the process each time it is fetched. After its last delivery it is a dead letter, every
// other record is indexed, no further process ends, and a retry that succeeds clears the dead letter.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var live *child
	poison, kills := "", 0
	kill := func(_ *testkit.SongServer, id string) {
		mu.Lock()
		defer mu.Unlock()
		if id == poison && live != nil {
			kills++
			live.kill()
			live = nil
		}
	}
	w := newWorld(t, settings{givesUpSoon: true, song: testkit.SongConfig{BeforeRecord: kill}})
	ids := w.fill("S1", 30)
	boot := func() {
		mu.Lock() // a fetch waits until it is known which process to kill
		defer mu.Unlock()
		live = w.startChild()
	}
	boot()
	mu.Lock()
	poison = ids[11]
	mu.Unlock()
	for _, id := range ids {
		if !w.tryPost(recordPath("S1", id)) { // the process has ended
			boot()
			if !w.tryPost(recordPath("S1", id)) {
				t.Logf("%s was not taken", id)
			}
		}
	}
	dead := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return live == nil
	}
	w.eventually(wait, func() (bool, string) {
		if dead() {
			boot()
		}
		a, err := w.request("GET", "/dead-letters")
		if err != nil {
			return false, err.Error()
		}
		mu.Lock()
		defer mu.Unlock()
		return len(a.get("deadLetters").Array()) > 0, fmt.Sprintf("%d kills, %s", kills, a.raw)
	})
	letters := w.mustRequest("GET", "/dead-letters", 200).get("deadLetters").Array()
	if len(letters) != 1 || letters[0].Get("recordId").String() != poison || letters[0].Get("reason").String() != core.ReasonCrashLoop {
		t.Fatalf("dead letters: %s", letters)
	}
	if attempts := letters[0].Get("attempts").Int(); attempts < int64(soonOptions.MaxDeliver) || kills < soonOptions.MaxDeliver {
		t.Errorf("%d attempts, %d kills, want at least %d", attempts, kills, soonOptions.MaxDeliver)
	}
	mu.Lock()
	poison = "" // fixed
	mu.Unlock()
	for _, id := range ids {
		if id != letters[0].Get("recordId").String() {
			w.trigger("S1", id) // those that were not taken
		}
	}
	w.mustRequest("POST", "/dead-letters/"+letters[0].Get("id").String()+"/retry", 202)
	w.eventually(wait, func() (bool, string) {
		a := w.mustRequest("GET", "/dead-letters", 200)
		return len(a.get("deadLetters").Array()) == 0, string(a.raw)
	})
	live.kill()
	w.start()
	w.awaitConverged(wait)
}
