package app_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDamagedQueue: a request of the embedded queue that was damaged on the disk is reported at the next start, the others are done, and a
// run of the difference does what it asked for.
func TestDamagedQueue(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{faulty: true})
	ids := w.fill("S1", 30)
	w.run("", "", "succeeded")
	w.wantConverged()
	w.engine.setDown(true)
	for i, id := range ids {
		w.song.SetState(id, []string{"UNPUBLISHED", "PUBLISHED"}[i%2])
		w.put("S1", ids[i|1], `"experiment":{"number":7}`)
		w.trigger("S1", id)
	}
	w.stop()
	files, err := filepath.Glob(filepath.Join(w.dir, "queue", "jetstream", "*", "streams", "REQUESTS", "msgs", "*.blk"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{ids[10], ids[15]} {
			at := bytes.LastIndex(data, []byte(`"recordId":"`+id))
			if at < 0 {
				t.Fatalf("no request of %s in %s", id, file)
			}
			data[at+len(`"recordId":"`)] ^= 1
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.engine.setDown(false)
	w.start()
	w.awaitConverged(wait)
	a := w.awaitReady()
	if reasons := a.get("reasons").String(); !strings.Contains(reasons, "2 stored messages of the stream REQUESTS were damaged") {
		t.Errorf("reasons %s", reasons)
	}
	if n := w.metric("tutti_queue_unreadable_messages", "stream", "REQUESTS"); n != 2 {
		t.Errorf("%v unreadable messages", n)
	}
	if !slices.ContainsFunc(w.logs.all(), func(line string) bool {
		return strings.Contains(line, "damaged on the disk") && strings.Contains(line, `"REQUESTS":2`)
	}) {
		t.Error("the log does not say it")
	}
	w.stop()
	w.start()
	if reasons := w.awaitReady().get("reasons").String(); strings.Contains(reasons, "damaged") {
		t.Errorf("reasons after another start: %s", reasons)
	}
}
