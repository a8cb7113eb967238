package main

import (
	"bytes"
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"tutti/internal/app"
	"tutti/internal/config"
)

// guides are the documents of deploy/docs in the order in which their examples run, after the README.
var guides = []string{"configuration", "indexing", "engines", "metadata", "search", "access", "notifications", "deploying", "operations", "runbook", "glossary", "migrating", "limits", "routes", "metrics", "contract", "design", "promises"}

// inside are the documents of deploy/docs about how tutti works inside, which CONTRIBUTING.md links; decisions are in a folder.
var inside = []string{"states"}

// readme returns the README and the guides, one after the other.
func readme(t *testing.T) string {
	t.Helper()
	files := []string{"README.md"}
	for _, name := range guides {
		files = append(files, filepath.Join("deploy", "docs", name+".md"))
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
		all.WriteByte('\n')
	}
	return all.String()
}

// TestGuides: the README links every guide, a test reads each of them, and each link within the documents leads to a file and a heading.
func TestGuides(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	found, err := filepath.Glob(filepath.Join(root, "deploy", "docs", "*.md"))
	if err != nil || len(found) != len(guides)+len(inside) {
		t.Errorf("%d files in deploy/docs, the tests read %d: %v", len(found), len(guides)+len(inside), err)
	}
	decisions, err := filepath.Glob(filepath.Join(root, "deploy", "docs", "decisions", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := filepath.Join(root, "README.md")
	linked := 0
	for _, file := range append(append(found, decisions...), readme, filepath.Join(root, ".github", "CONTRIBUTING.md"), filepath.Join(root, ".github", "SECURITY.md"), filepath.Join(root, ".github", "CHANGELOG.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`\]\(([^):\s]+)\)`).FindAllStringSubmatch(string(text), -1) {
			path, heading, _ := strings.Cut(link[1], "#")
			target := filepath.Join(filepath.Dir(file), path)
			if path == "" {
				target = file
			}
			content, err := os.ReadFile(target)
			if err != nil || !slices.Contains(anchors(content), heading) {
				t.Errorf("%s links %s: no such file or heading (%v)", file, link[1], err)
			}
			if file == readme && slices.Contains(found, target) {
				linked++
			}
		}
	}
	if linked < len(guides) {
		t.Errorf("the README links %d of %d guides", linked, len(guides))
	}
}

// anchors returns the anchors of the headings of a Markdown file, and "" for the file.
func anchors(text []byte) []string {
	all := []string{""}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(string(heading[1])), "")
		all = append(all, strings.ReplaceAll(anchor, " ", "-"))
	}
	return all
}

// TestReadmeCommands: every command and flag that the README shows exists.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	calls := regexp.MustCompile(`(?m)(?:^|\s)(?:go run \./cmd/tutti|\./tutti|tutti) ((?:[a-z][a-z-]* ?)+)((?: ?--[a-z-]+(?: [^\s-]\S*)?)*)`)
	found := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readme(t), -1) {
		for line := range strings.Lines(block[1]) {
			code, _, _ := strings.Cut(line, "#")
			if strings.HasPrefix(code, "go build") {
				continue
			}
			for _, call := range calls.FindAllStringSubmatch(code, -1) {
				found++
				root := rootCommand()
				root.InitDefaultCompletionCmd()
				cmd, rest, err := root.Find(strings.Fields(call[1]))
				if err == nil && cmd.HasSubCommands() && len(rest) > 0 {
					err = cobra.NoArgs(cmd, rest)
				}
				if err != nil || !cmd.HasParent() {
					t.Errorf("the README shows %q: %v", strings.TrimSpace(code), err)
					continue
				}
				for _, flag := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(call[2], -1) {
					if cmd.Flag(flag[1]) == nil {
						t.Errorf("%s has no flag --%s, which the README shows", cmd.CommandPath(), flag[1])
					}
				}
			}
		}
	}
	if found < 2 {
		t.Errorf("%d commands found in the README, the test reads it wrongly", found)
	}
}

// TestReadmeTargets: every target of make that the README names is there.
func TestReadmeTargets(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`make ([a-z-]+)`").FindAllStringSubmatch(readme(t), -1)
	if len(names) == 0 {
		t.Error("no target found in the README, the test reads it wrongly")
	}
	for _, name := range names {
		if !bytes.Contains(makefile, []byte("\n"+name[1]+":")) {
			t.Errorf("the README names make %s, which does not exist", name[1])
		}
	}
}

// TestReadmeMetricsAndFolders: every metric and every folder that the README and CONTRIBUTING.md name exist.
func TestReadmeMetricsAndFolders(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	contributing, err := os.ReadFile(filepath.Join(root, ".github", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := readme(t) + string(contributing)
	var code []byte
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := os.ReadFile(path)
		code = append(code, file...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`tutti_[a-z_]+`).FindAllString(text, -1) {
		if !bytes.Contains(code, []byte(`"`+name+`"`)) {
			t.Errorf("the README names the metric %s, which does not exist", name)
		}
	}
	for _, path := range regexp.MustCompile("`((?:cmd|consumers|deploy|http|ingest|internal|schemas)/[a-z0-9/.-]+)`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(root, path[1])); err != nil {
			t.Errorf("the README names %s: %v", path[1], err)
		}
	}
}

// TestReadmeConfiguration: the configuration that the README shows is one.
func TestReadmeConfiguration(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readme(t), -1)
	if len(blocks) == 0 {
		t.Fatal("no configuration found in the README")
	}
	mapping := filepath.Join(t.TempDir(), "mapping.json") // a file that the guides name
	if err := os.WriteFile(mapping, []byte(`{"properties": {}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		if _, err := config.Parse([]byte(strings.ReplaceAll(block[1], ": mapping.json", ": "+mapping)), nil); err != nil {
			t.Errorf("%v\n%s", err, block[1])
		}
	}
}

// TestReadmeRoutes: every route that the README names is in the OpenAPI document that the program serves, and the
// README names each of the document's.
func TestReadmeRoutes(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(upstream.Close)
	cfg, err := config.Parse([]byte(`
server: {listen: "127.0.0.1:0"}
dataDir: "`+t.TempDir()+`"
repositories: [{code: a, type: song, url: "`+upstream.URL+`", indexName: analyses}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(cfg, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(context.WithoutCancel(t.Context())) })
	resp, err := http.Get(a.URL() + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var document bytes.Buffer
	if _, err := document.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	var served []string
	gjson.GetBytes(document.Bytes(), "paths").ForEach(func(path, methods gjson.Result) bool {
		methods.ForEach(func(method, _ gjson.Result) bool {
			served = append(served, strings.ToUpper(method.String())+" "+path.String())
			return true
		})
		return true
	})
	named := readmeRoutes(readme(t))
	for _, route := range named {
		if !slices.Contains(served, route) {
			t.Errorf("the README names %s, which is not in the OpenAPI document", route)
		}
	}
	for _, route := range served {
		if !slices.Contains(named, route) && !slices.Contains(named, strings.Replace(route, "DELETE ", "GET ", 1)) {
			t.Errorf("the README does not name %s", route)
		}
	}
}

// readmeRoutes finds what stands in backquotes as a method and a path; an optional part in brackets counts with and
// without.
func readmeRoutes(text string) []string {
	var routes []string
	for _, m := range regexp.MustCompile("`(GET|POST|PUT|PATCH|DELETE) (/[^`? ]*)[^`]*`").FindAllStringSubmatch(text, -1) {
		path := m[2]
		for {
			before, rest, optional := strings.Cut(path, "[")
			if !optional {
				break
			}
			routes = append(routes, m[1]+" "+before)
			path = before + strings.TrimSuffix(rest, "]")
		}
		routes = append(routes, m[1]+" "+path)
	}
	slices.Sort(routes)
	return slices.Compact(routes)
}
