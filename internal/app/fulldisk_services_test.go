//go:build services && linux

package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tutti/internal/app"
	"tutti/internal/app/backup"
	"tutti/internal/app/storage"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

const (
	// namespaceVariable makes TestFullDisks the child that may mount file systems.
	namespaceVariable = "TUTTI_TEST_MOUNTS"
	// roundsVariable says how often each disk is filled; once by default.
	roundsVariable = "TUTTI_TEST_FULL_ROUNDS"
	// downWithin is how soon /ready must say that a disk is full (RELIABILITY, T14).
	downWithin = 10 * time.Second
)

// wholeDisk means queue, store and index on one disk.
const wholeDisk = "all"

// TestFullDisks fills the disk of the queue, of the store, of the index and of all three, each a tmpfs of 48 MB, and frees it
// again while requests come in (RELIABILITY, T14): /ready says so, all works again without a restart, and nothing acknowledged is lost. It
// mounts in a name space of its own, which ends with the child.
func TestFullDisks(t *testing.T) {
	if os.Getenv(namespaceVariable) != "" {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"queue", "store", "index", wholeDisk} {
			t.Run(part, func(t *testing.T) {
				f := newFullDisk(t, part)
				f.launch()
				f.trial(rounds(t))
			})
			t.Run(part+", killed", func(t *testing.T) { newFullDisk(t, part).killed(rounds(t)) })
		}
		t.Run("backup", backUpToFullDisk)
		return
	}
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisks$", "-test.v")
	child.Env = append(os.Environ(), namespaceVariable+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if id := os.Getuid(); id != 0 {
		child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
		child.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := child.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// backUpToFullDisk: a backup onto a full disk leaves nothing there and says what to do, each of which leads to a complete backup.
func backUpToFullDisk(t *testing.T) {
	f := newFullDisk(t, "target")
	f.launch()
	f.song.AddStudy("S1")
	f.put("S1", "A", "")
	f.trigger("S1", "A")
	f.eventually(wait, func() (bool, string) {
		_, is, err := f.app.Index().Get(t.Context(), f.alias, "A")
		return is, fmt.Sprint(err)
	})
	backUp := func(dir string) error {
		a := f.mustRequest(http.MethodGet, "/backup", http.StatusOK)
		_, err := backup.Unpack(bytes.NewReader(a.raw), dir)
		return err
	}
	filler, dir := f.fill(), filepath.Join(f.disk, "of today")
	for range 2 {
		wantHint(t, backUp(dir), core.CodeUnavailable, "free some space, or name a folder on another disk")
		if left, err := filepath.Glob(filepath.Join(f.disk, "*")); err != nil || len(left) != 1 {
			t.Errorf("the disk has %v after the error (%v)", left, err)
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "backup")
	followed := backUp(elsewhere)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(followed, backUp(dir)); err != nil {
		t.Fatal(err)
	}
	for _, complete := range []string{elsewhere, dir} {
		restored := *f.world
		restored.dir = filepath.Join(t.TempDir(), "restored")
		cfg, err := config.Parse([]byte(restored.yaml()), nil)
		if err == nil {
			_, err = storage.Restore(t.Context(), cfg, slog.New(slog.DiscardHandler), complete)
		}
		if err != nil {
			t.Errorf("restoring %s: %v", complete, err)
		}
	}
}

func rounds(t *testing.T) int {
	t.Helper()
	given := os.Getenv(roundsVariable)
	if given == "" {
		return 1
	}
	n, err := strconv.Atoi(given)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fullDisk is a tutti with one of its parts, or all of them, on a small disk.
type fullDisk struct {
	*world
	part string
	// disk is where the disk is mounted.
	disk string
	// acked are the ids of records, or of studies, whose requests were acknowledged.
	acked []string
	next  int
}

func newFullDisk(t *testing.T, part string) *fullDisk {
	t.Helper()
	dir := t.TempDir()
	disk := filepath.Join(dir, part)
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=48m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	if part == wholeDisk {
		dir = disk
	}
	song, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(song.Close)
	f := &fullDisk{part: part, disk: disk, world: &world{
		t: t, song: song, dir: dir, alias: "analyses", logs: &logBuffer{}, client: &http.Client{Timeout: 30 * time.Second},
		block: new(atomic.Pointer[[]byte]),
	}}
	f.set.configuration = func(w *world) string {
		return fmt.Sprintf(`
server: {listen: "127.0.0.1:0", startTimeout: 10s}
dataDir: %q
repositories: [{code: %s, type: song, url: %q, indexName: %s}]
`, w.dir, code, song.URL(), w.alias)
	}
	return f
}

// launch starts the tutti in this process.
func (f *fullDisk) launch() {
	f.t.Helper()
	cfg, err := config.Parse([]byte(f.yaml()), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	a, err := app.New(cfg, app.Options{Logger: slog.New(slog.NewJSONHandler(f.logs, nil))})
	if err != nil {
		f.t.Fatal(err)
	}
	if err := a.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := a.Stop(context.WithoutCancel(f.t.Context())); err != nil {
			f.t.Errorf("stopping: %v", err)
		}
	})
	f.app, f.url = a, a.URL()
	f.t.Cleanup(f.logState)
}

// killed kills the tutti on the full disk and starts it there: it works as soon as there is space, or does not start and says why. Nothing that
// was acknowledged is lost.
func (f *fullDisk) killed(rounds int) {
	for round := range rounds {
		process := f.startChild()
		f.await("up", wait)
		f.write(50)
		filler := f.fill()
		f.write(20)
		process.kill()
		before := len(f.logs.all())
		process, url, err := f.tryChild()
		if err != nil && !strings.Contains(strings.Join(f.logs.all()[before:], ""), syscall.ENOSPC.Error()) {
			f.t.Errorf("a start on the full disk failed with %v, and did not say why:\n%s", err, f.logs.tail())
		}
		f.t.Logf("round %d: a start on the full disk: %v", round, err)
		if err := os.Remove(filler); err != nil {
			f.t.Fatal(err)
		}
		if f.url = url; err != nil {
			process = f.startChild()
		}
		f.await("up", wait)
		acked := len(f.acked)
		f.write(20)
		if len(f.acked) != acked+20 {
			f.t.Fatalf("%d of 20 requests were acknowledged with free space again", len(f.acked)-acked)
		}
		process.kill()
	}
	f.launch()
	f.await("up", wait)
	f.arrived()
}

// trial fills and frees the disk, and then looks for all that was acknowledged.
func (f *fullDisk) trial(rounds int) {
	f.await("up", wait)
	for round := range rounds {
		before := len(f.logs.all())
		f.write(50)
		filler := f.fill()
		began := time.Now()
		f.await("down", downWithin)
		reported := time.Since(began)
		acked := len(f.acked)
		slowest := f.write(20)
		if f.part != "index" && len(f.acked) > acked+15 {
			f.t.Errorf("%d of 20 requests were acknowledged on a full disk", len(f.acked)-acked)
		}
		began = time.Now()
		if err := os.Remove(filler); err != nil {
			f.t.Fatal(err)
		}
		f.await("up", wait)
		f.t.Logf("round %d: down after %s, up after %s, slowest request on the full disk %s, %d lines logged", round,
			reported.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), slowest.Round(time.Millisecond), len(f.logs.all())-before)
		acked = len(f.acked)
		f.write(20)
		if len(f.acked) != acked+20 {
			f.t.Fatalf("%d of 20 requests were acknowledged with free space again", len(f.acked)-acked)
		}
	}
	f.arrived()
}

// write sends n requests, and returns how long the slowest took.
func (f *fullDisk) write(n int) (slowest time.Duration) {
	f.t.Helper()
	for range n {
		f.next++
		id := fmt.Sprintf("study-%d", f.next)
		path, want := "/studies/"+id, http.StatusOK
		if f.part != "store" {
			a := dataset.GenerateAnalyses(uint64(f.next), "S1", 1)[0]
			f.song.PutAll(a)
			id, path, want = a.ID, recordPath("S1", a.ID), http.StatusAccepted
		}
		began := time.Now()
		got, err := f.request(http.MethodPost, path)
		if err != nil {
			f.t.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
		switch {
		case got.status == want:
			f.acked = append(f.acked, id)
		case got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "":
			f.t.Fatalf("POST %s: %d, %s", path, got.status, got.raw)
		}
	}
	return slowest
}

// fill fills the disk to its last page and returns what does.
func (f *fullDisk) fill() string {
	f.t.Helper()
	filler, err := os.Create(filepath.Join(f.disk, "filler"))
	if err != nil {
		f.t.Fatal(err)
	}
	page := make([]byte, os.Getpagesize())
	for err == nil {
		_, err = filler.Write(page)
	}
	if err := filler.Close(); err != nil {
		f.t.Fatal(err)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		f.t.Fatal(err)
	}
	return filler.Name()
}

// await sends requests until /ready has the expected state of the component, at most for within.
func (f *fullDisk) await(state string, within time.Duration) {
	f.t.Helper()
	f.eventually(within, func() (bool, string) {
		if state == "down" {
			f.write(1)
		}
		a := f.ready()
		matches := true
		for _, part := range f.parts() {
			matches = matches && a.get("components."+part).String() == state
		}
		switch {
		case state == "up":
			matches = matches && a.status == http.StatusOK && len(a.get("paused").Array()) == 0
		case f.part == "index":
			matches = matches && len(a.get("paused").Array()) == 1
		default:
			matches = matches && a.status == http.StatusServiceUnavailable && a.get("status").String() == "unhealthy" && !a.get("ready").Bool()
		}
		return matches, string(a.raw)
	})
}

// parts returns the components on the disk.
func (f *fullDisk) parts() []string {
	if f.part == wholeDisk {
		return []string{"queue", "store", "index"}
	}
	return []string{f.part}
}

// arrived fails the test unless the index holds all that was acknowledged.
func (f *fullDisk) arrived() {
	f.t.Helper()
	lost := func() (missing []string) {
		var studies string
		if f.part == "store" {
			studies = string(f.mustRequest(http.MethodGet, "/studies/all", http.StatusOK).raw)
		}
		for _, id := range f.acked {
			there := strings.Contains(studies, `"`+id+`"`)
			if f.part != "store" {
				_, there, _ = f.app.Index().Get(f.t.Context(), f.alias, id)
			}
			if !there {
				missing = append(missing, id)
			}
		}
		return missing
	}
	f.eventually(wait, func() (bool, string) {
		missing := lost()
		return len(missing) == 0, fmt.Sprintf("%d of %d are missing", len(missing), len(f.acked))
	})
	f.t.Logf("all %d acknowledged requests arrived", len(f.acked))
}
