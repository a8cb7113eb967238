package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// writingDir, in the environment, makes this test binary a child that writes until it is killed.
const writingDir = "TUTTI_TEST_STORE_DIR"

// writingYields makes the child leave the file to others for as long as it writes. SQLite's locks are not fair: a writer that begins
// again at once starves the others.
const writingYields = "TUTTI_TEST_STORE_YIELDS=1"

// writeUntilKilled adds studies from several callers and prints each one that was committed.
func writeUntilKilled(dir string) error {
	s, err := store.Open(context.Background(), store.Config{Dir: dir})
	if err != nil {
		return err
	}
	failed := make(chan error)
	var turn sync.Mutex
	update := func(id string) error { return s.Update(context.Background(), insert(id, id+"+")) }
	if slices.Contains(os.Environ(), writingYields) {
		update = func(id string) error {
			turn.Lock()
			defer turn.Unlock()
			begin := time.Now()
			err := s.Update(context.Background(), insert(id, id+"+"))
			time.Sleep(time.Since(begin))
			return err
		}
	}
	for w := range 4 {
		go func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("child-%d-%06d", w, n)
				if err := update(id); err != nil {
					failed <- err
					return
				}
				fmt.Println(id)
			}
		}()
	}
	return <-failed
}

// writingChild starts a process that writes to the store in dir, and returns its output.
func writingChild(t *testing.T, dir string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(append(os.Environ(), env...), writingDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() })
	return child, bufio.NewScanner(out)
}

// TestKilled: transactions that a killed process reported as committed are in the store, and none is there partially.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		child, lines := writingChild(t, dir)
		var told []string
		for lines.Scan() {
			told = append(told, lines.Text())
			if len(told) == 100 {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = child.Wait() // the error of the kill
		if len(told) < 100 {
			t.Fatalf("the child ended after %d transactions", len(told))
		}
		s, err := store.Open(t.Context(), store.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		there := studies(t, s)
		for _, id := range told {
			if _, found := slices.BinarySearch(there, id); !found {
				t.Errorf("round %d: %s is lost", round, id)
			}
		}
		for _, id := range there {
			if strings.HasSuffix(id, "+") {
				continue
			}
			if _, found := slices.BinarySearch(there, id+"+"); !found {
				t.Errorf("round %d: %s is there partially", round, id)
			}
		}
		statement(t, s, "DELETE FROM study")
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestTwoProcesses: two processes that write to one SQLite file wait for each other and lose nothing.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	s := storetest.OpenConfig(t, store.Config{Dir: dir})
	child, lines := writingChild(t, dir, writingYields)
	if !lines.Scan() {
		t.Fatal("the child wrote nothing")
	}
	told := []string{lines.Text()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := range 50 {
			if err := s.Update(t.Context(), insert(fmt.Sprintf("parent-%02d", n))); err != nil {
				t.Error(err)
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Error(err)
		}
	})
	for lines.Scan() {
		told = append(told, lines.Text())
	}
	wg.Wait()
	_ = child.Wait()
	there := studies(t, s)
	for n := range 50 {
		told = append(told, fmt.Sprintf("parent-%02d", n))
	}
	for _, id := range told {
		if _, found := slices.BinarySearch(there, id); !found {
			t.Errorf("%s is lost", id)
		}
	}
}
