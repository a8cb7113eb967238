package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
)

// crashDir is an environment variable that makes this test binary a child that writes until it is killed.
const crashDir = "TUTTI_TEST_CRASH_DIR"

const crashBatch = 50

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		os.Exit(writeUntilKilled(dir))
	}
	if dir := os.Getenv(churnDir); dir != "" {
		os.Exit(churnUntilKilled(dir, os.Getenv(churnFrom)))
	}
	if dir := os.Getenv(fullDir); dir != "" {
		if err := fillDisk(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// writeUntilKilled writes batches from two writers and prints the number of each acknowledged batch.
func writeUntilKilled(dir string) int {
	x, err := embedded.Open(embedded.Config{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := x.Ensure(context.Background(), index.Spec{Alias: "analyses", Known: mapping.Song()}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	failed := make(chan error)
	for w := range 2 {
		go func() {
			for n := w; ; n += 2 {
				if _, err := x.Write(context.Background(), crashBatchOf(x, n)); err != nil {
					failed <- err
					return
				}
				fmt.Println(n)
			}
		}()
	}
	fmt.Fprintln(os.Stderr, <-failed)
	return 1
}

// crashBatchOf returns documents with ids of the batch, and one that all batches write.
func crashBatchOf(x index.Index, n int) core.Batch {
	b := core.Batch{Index: "analyses"}
	for i := range crashBatch {
		id := fmt.Sprintf("%d-%d", n, i)
		if i == 0 {
			id = "shared"
		}
		item := core.BatchItem{ID: id, Version: core.Version(n + 1), Start: len(b.Body)}
		doc := fmt.Appendf(nil, `{"analysisId":%q,"studyId":"S%d","grown":{"field%d":%d}}`, id, n%3, n%40, n)
		b.Body, item.DocStart, item.DocEnd = x.Encode(b.Body, core.Write{Document: doc})
		item.End = len(b.Body)
		b.Items = append(b.Items, item)
	}
	return b
}

// TestKill repeatedly kills a writing process and opens what it left: all acknowledged batches are there, no batch is incomplete,
// and counts, scopes and mapping agree with the documents.
func TestKill(t *testing.T) {
	for round := range 4 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			dir := t.TempDir()
			acknowledged := killAfter(t, 5+rand.IntN(30), crashDir+"="+dir)
			x := open(t, embedded.Config{Dir: dir})
			highest, batches := 0, 0
			for _, n := range acknowledged {
				highest = max(highest, n)
			}
			for n := 0; n <= highest+4; n++ {
				batches += checkBatch(t, x, n)
			}
			for _, n := range acknowledged {
				if _, found, err := x.Get(t.Context(), "analyses", fmt.Sprintf("%d-1", n)); err != nil || !found {
					t.Errorf("batch %d was acknowledged and is lost (%v)", n, err)
				}
			}
			want := int64(batches*(crashBatch-1) + 1)
			sum := int64(0)
			for s := range 3 {
				n, err := x.Count(t.Context(), "analyses", core.IndexScope{Field: "studyId", Organization: fmt.Sprint("S", s)})
				if err != nil {
					t.Fatal(err)
				}
				sum += n
			}
			all, err := x.Count(t.Context(), "analyses", core.IndexScope{})
			if err != nil || all != want || sum != want {
				t.Errorf("counts: all %d, by study %d, want %d (%v)", all, sum, want, err)
			}
			shared, _, err := x.Get(t.Context(), "analyses", "shared")
			if err != nil || int(shared.Version) < highest+1 {
				t.Errorf("the shared document has version %d, want at least %d (%v)", shared.Version, highest+1, err)
			}
			checkStored(t, x, want)
		})
	}
}

// checkStored compares a stream of all documents, and their number, with what is stored.
func checkStored(t *testing.T, x *embedded.Index, want int64) {
	t.Helper()
	all := streamed(t, x, "analyses")
	if int64(len(all)) != want || search(t, x, "analyses", index.SearchRequest{Total: true}).Total != want {
		t.Errorf("searches find %d documents, want %d", len(all), want)
	}
	for id, source := range all {
		doc, found, err := x.Get(t.Context(), "analyses", id)
		if err != nil || !found || string(doc.Source) != source {
			t.Fatalf("a search returns %s %s, stored is %s (%v)", id, source, doc.Source, err)
		}
	}
}

// checkBatch returns 1 when batch n exists, 0 when it does not, and fails when it is incomplete.
func checkBatch(t *testing.T, x *embedded.Index, n int) int {
	t.Helper()
	there := 0
	for i := 1; i < crashBatch; i++ {
		doc, found, err := x.Get(t.Context(), "analyses", fmt.Sprintf("%d-%d", n, i))
		if err != nil {
			t.Fatal(err)
		}
		if found {
			there++
			if doc.Version != core.Version(n+1) || !strings.Contains(string(doc.Source), fmt.Sprintf(`"field%d":%d`, n%40, n)) {
				t.Errorf("batch %d, document %d: %+v", n, i, doc)
			}
		}
	}
	if there != 0 && there != crashBatch-1 {
		t.Errorf("batch %d is incomplete: %d of %d documents", n, there, crashBatch-1)
	}
	if there == 0 {
		return 0
	}
	raw, err := x.Mapping(t.Context(), "analyses")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if tree.Lookup(fmt.Sprint("grown.field", n%40)) == nil {
		t.Errorf("batch %d is there, but not the field that it brought", n)
	}
	return 1
}

// killAfter runs the child until it has acknowledged so many batches, and returns the numbers of all acknowledged ones.
func killAfter(t *testing.T, batches int, environ ...string) []int {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), environ...)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged []int
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("the child said %q", lines.Text())
		}
		acknowledged = append(acknowledged, n)
		if len(acknowledged) == batches {
			// The moment of the kill within a transaction is random.
			time.AfterFunc(time.Duration(rand.IntN(5000))*time.Microsecond, func() { _ = child.Process.Kill() })
		}
	}
	if err := child.Wait(); err == nil || len(acknowledged) < batches {
		t.Fatalf("the child ended by itself after %d batches: %v", len(acknowledged), err)
	}
	return acknowledged
}

// churnDir and churnFrom are environment variables that make this test binary a child that rewrites and removes documents until it
// is killed, starting with a batch of that number.
const (
	churnDir  = "TUTTI_TEST_CHURN_DIR"
	churnFrom = "TUTTI_TEST_CHURN_FROM"
)

func churnUntilKilled(dir, from string) int {
	x, err := embedded.Open(embedded.Config{Dir: dir})
	if err == nil {
		err = x.Ensure(context.Background(), index.Spec{Alias: "analyses", Known: mapping.Song()})
	}
	n := 0
	if err == nil {
		n, err = strconv.Atoi(from)
	}
	for ; err == nil; n++ {
		b := core.Batch{Index: "analyses"}
		for _, w := range churnBatch(n) {
			item := core.BatchItem{Op: w.Op, ID: w.ID, Version: w.Version, Start: len(b.Body)}
			b.Body, item.DocStart, item.DocEnd = x.Encode(b.Body, w)
			item.End = len(b.Body)
			b.Items = append(b.Items, item)
		}
		if _, err = x.Write(context.Background(), b); err == nil {
			fmt.Println(n)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// churnBatch returns the writes of one batch: rewrites and removals of documents of all ages.
func churnBatch(n int) []core.Write {
	random := rand.New(rand.NewPCG(uint64(n), 1))
	writes := []core.Write{{ID: "last", Version: core.Version(n + 1), Document: fmt.Appendf(nil, `{"batch":%d}`, n)}}
	for i := range 700 {
		w := core.Write{ID: fmt.Sprint("d", random.IntN(15_000+100*n)), Version: core.Version(n + 1)}
		if random.IntN(8) == 0 {
			w.Op = core.OpDelete
		} else {
			w.Document = fmt.Appendf(nil, `{"studyId":"S%d","batch":%d,"i":%d}`, i%3, n, i)
		}
		writes = append(writes, w)
	}
	return writes
}

// TestKillOfSearches repeatedly kills a process that rewrites documents in segment files, in one folder: after each start, searches
// return what was acknowledged, with or without the batch in progress.
func TestKillOfSearches(t *testing.T) {
	dir := t.TempDir()
	want := map[string]string{}
	apply := func(n int) {
		for _, w := range churnBatch(n) {
			if w.Op == core.OpDelete {
				delete(want, w.ID)
			} else {
				want[w.ID] = string(w.Document)
			}
		}
	}
	next := 0
	for range 5 {
		acknowledged := killAfter(t, 10+rand.IntN(40), churnDir+"="+dir, churnFrom+"="+strconv.Itoa(next))
		for range acknowledged {
			apply(next)
			next++
		}
		x := open(t, embedded.Config{Dir: dir})
		last, _, err := x.Get(t.Context(), "analyses", "last")
		if err != nil {
			t.Fatal(err)
		}
		if last.Version == core.Version(next+1) {
			apply(next)
			next++
		}
		checkSearches(t, x, "analyses", want)
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(segmentFiles(t, dir)) == 0 {
		t.Error("no segment file was written")
	}
}
