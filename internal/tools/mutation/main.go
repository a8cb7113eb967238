// Command mutation checks that the tests fail for seeded faults. For each mutation of its table it builds the module with one text of
// the source replaced (go test -overlay: the source tree stays as it is), and runs the tests that are expected to fail. It prints each
// result, and exits with status 1 if a mutation survives, does not compile, or its text is not found exactly once. Arguments restrict
// the run to the mutations with these ids. It runs in the root of the module.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// testTimeout limits one test binary. A mutation may block a test for ever; that counts as caught.
const testTimeout = "2m"

func main() { os.Exit(run(os.Args[1:])) }

func run(ids []string) int {
	bad := 0
	known := 0
	for _, m := range mutations() {
		if len(ids) > 0 && !slices.Contains(ids, m.id) {
			continue
		}
		known++
		start := time.Now()
		result := "caught"
		if err := m.try(); err != nil {
			bad++
			result = err.Error()
		}
		fmt.Printf("%-32s %5.1fs  %s\n", m.id, time.Since(start).Seconds(), result)
	}
	fmt.Printf("%d mutations, %d caught\n", known, known-bad)
	if bad > 0 || known == 0 {
		return 1
	}
	return 0
}

// mutation is a fault to seed into the source.
type mutation struct {
	id string
	// folder is where the text find occurs exactly once, in a file that is not a test, at any depth. replace takes its place.
	folder        string
	find, replace string
	// packages are the packages of the tests that must fail, run the -run pattern; "" runs all tests.
	packages []string
	run      string
}

// try returns nil if the tests fail for the mutation.
func (m mutation) try() error {
	file, mutated, err := m.mutate()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := writeOverlay(dir, file, mutated)
	if err != nil {
		return err
	}
	args := []string{"test", "-overlay", overlay, "-vet=off", "-failfast", "-timeout", testTimeout, "-run", m.run}
	out, err := exec.Command("go", append(args, m.packages...)...).CombinedOutput()
	return outcome(out, err)
}

// outcome returns nil if the output and the error of go test are of a failed test.
func outcome(out []byte, err error) error {
	switch exit := (*exec.ExitError)(nil); {
	case err == nil:
		return fmt.Errorf("SURVIVED\n%s", out)
	case !errors.As(err, &exit):
		return err
	case bytes.Contains(out, []byte("--- FAIL")), bytes.Contains(out, []byte("panic: ")), bytes.Contains(out, []byte("fatal error: ")):
		return nil
	default:
		return fmt.Errorf("NO TEST RAN: %w\n%s", err, out)
	}
}

// mutate returns the file that contains the text, and its content with the replacement.
func (m mutation) mutate() (file string, mutated []byte, err error) {
	err = filepath.WalkDir(m.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch found := bytes.Count(content, []byte(m.find)); {
		case found == 0:
			return nil
		case found > 1 || file != "":
			return fmt.Errorf("TEXT FOUND TWICE: %s also contains %q", path, m.find)
		}
		file, mutated = path, bytes.Replace(content, []byte(m.find), []byte(m.replace), 1)
		return nil
	})
	if err == nil && file == "" {
		err = fmt.Errorf("TEXT NOT FOUND: no file below %s contains %q", m.folder, m.find)
	}
	return file, mutated, err
}

// writeOverlay writes the overlay file of go test, in which mutated takes the place of file, and returns its path.
func writeOverlay(dir, file string, mutated []byte) (string, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(dir, "mutated.go")
	if err := os.WriteFile(replacement, mutated, 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: replacement}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}
