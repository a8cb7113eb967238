package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write the generated guides")

// TestMetricsGuide: the guide to the metrics is the one of what tutti registers; -update writes it.
func TestMetricsGuide(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	out.WriteString("# Metrics\n\n`GET /metrics` has these in Prometheus' format, and those of the Go runtime and of the process. Counters end in `_total`; durations\n" +
		"are seconds, sizes bytes. This page is generated: `go test ./cmd/tutti -run TestMetricsGuide -update`.\n\n| metric | labels | meaning |\n|---|---|---|\n")
	for _, m := range registered(t) {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", m.name, strings.Join(m.labels, ", "), strings.ReplaceAll(m.help, "|", `\|`))
		if !strings.HasSuffix(m.help, ".") {
			t.Errorf("the help of %s does not end in a period: %q", m.name, m.help)
		}
	}
	file := filepath.Join("..", "..", "deploy", "docs", "metrics.md")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), out.String()); diff != "" {
		t.Errorf("%s: %s", file, diff)
	}
}

// inline returns what stands in backquotes within the text of the documents, without their blocks of code.
func inline(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, span := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(regexp.MustCompile("(?s)```.*?```").ReplaceAllString(readme(t), ""), -1) {
		found = append(found, span[1])
	}
	return found
}

// TestGuidesNameCommands: every command and flag within the text of the documents exists, and every command is named in them.
func TestGuidesNameCommands(t *testing.T) {
	t.Parallel()
	for _, span := range inline(t) {
		line, isCommand := strings.CutPrefix(strings.TrimPrefix(span, "./"), "tutti ")
		if !isCommand {
			continue
		}
		words := strings.Fields(line)
		cmd, rest, err := rootCommand().Find(words)
		if err == nil && cmd.HasSubCommands() && len(rest) > 0 {
			err = cobra.NoArgs(cmd, rest)
		}
		if err != nil {
			t.Errorf("the documents name `%s`: %v", span, err)
			continue
		}
		for _, word := range words {
			if name, isFlag := strings.CutPrefix(word, "--"); isFlag && name != "help" && cmd.Flag(name) == nil {
				t.Errorf("the documents name `%s`, which has no flag --%s", span, name)
			}
		}
	}
	text := readme(t)
	for _, cmd := range leaves(rootCommand()) {
		if !regexp.MustCompile(`tutti ` + strings.TrimPrefix(cmd.CommandPath(), "tutti ") + `\b`).MatchString(text) {
			t.Errorf("no document names %s", cmd.CommandPath())
		}
	}
}

// leaves returns the commands that do something.
func leaves(cmd *cobra.Command) []*cobra.Command {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	var all []*cobra.Command
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			all = append(all, leaves(sub)...)
		}
	}
	return all
}

// otherVariables are those of clients and of Compose's file, which are no keys.
var otherVariables = []string{"TUTTI_CONFIG", "TUTTI_SERVER", "TUTTI_TOKEN", "TUTTI_CA_FILE", "TUTTI_POSTGRES_PASSWORD", "TUTTI_GRAFANA_PASSWORD"}

// TestGuidesNameKeys: every key and every variable that the documents name is in the reference of the configuration.
func TestGuidesNameKeys(t *testing.T) {
	t.Parallel()
	reference, err := os.ReadFile(filepath.Join("..", "..", "deploy", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	var paths, sections, variables []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` .*?(?:`(TUTTI_[A-Z0-9_]+)`.*)?$").FindAllSubmatch(reference, -1) {
		paths, variables = append(paths, string(row[1])), append(variables, string(row[2]))
	}
	for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllSubmatch(reference, -1) {
		sections = append(sections, string(heading[1]))
	}
	if len(paths) < 100 || len(sections) < 10 {
		t.Fatalf("%d keys in %d sections are read", len(paths), len(sections))
	}
	known := func(path string) bool {
		return slices.ContainsFunc(paths, func(p string) bool {
			return p == path || strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[]") || p == strings.TrimSuffix(path, "File")
		})
	}
	named := 0
	for _, span := range inline(t) {
		key := regexp.MustCompile(`^([a-z][A-Za-z]*)((?:\[\])?\.[A-Za-z.\[\]]+)(:? .*)?$`).FindStringSubmatch(span)
		if key == nil || !slices.Contains(sections, key[1]) || span == "repositories.code" { // which is a field of documents
			continue
		}
		if named++; !known(key[1] + key[2]) {
			t.Errorf("the documents name the key `%s`, which does not exist", span)
		}
	}
	for _, name := range regexp.MustCompile(`\bTUTTI_[A-Z0-9_]*[A-Z0-9]\b`).FindAllString(readme(t), -1) {
		if named++; !slices.Contains(variables, name) && !slices.Contains(otherVariables, name) {
			t.Errorf("the documents name %s, which is no key's variable", name)
		}
	}
	if named < 80 {
		t.Errorf("%d keys and variables are found in the documents", named)
	}
}

// notRun are the blocks of commands in the documents that no test runs, by how they begin, with the reason.
var notRun = map[string]string{
	"$ curl -s http:/":  "needs the demo; TestFirstSearch of internal/tools/demo runs it there and compares the answer",
	"PUT /_security/r":  "needs an engine; TestPrivilegesOfTheGuide compares it with the user of make test-services",
	"PUT /_plugins/_s":  "needs an engine; TestPrivilegesOfTheGuide compares it with the user of make test-services",
	"CREATE ROLE tutt":  "needs a server; TestPostgresRights of internal/store runs it with make test-services",
	"docker build":      "needs a container engine; TestImage reads the Dockerfile",
	"export TUTTI_POS":  "needs a container engine; TestCompose reads the file",
	"permissions: {\n ": "needs a server; TestRightsOfTheGuide of internal/queue compares it with the rights of the tests' users",
	"nsc edit user tu":  "needs an operator; TestRightsOfTheGuide of internal/queue compares it with the rights of the tests' users",
	"kafka-acls.sh --":  "needs a broker; TestSecuredKafka of internal/app/check grants the same with make test-services",
	"ingest:\n  kafka:": "needs secured brokers and files; TestSecuredKafka of internal/app/check uses the same keys with make test-services",
	"sasl:\n  mechanis": "needs secured brokers and files; TestSecuredKafka of internal/app/check uses the same keys with make test-services",
	"kubectl create":    "needs a cluster; make deployment renders the chart and validates it",
	"install -m 755":    "needs root and systemd; make deployment verifies the unit",
	"install -D -m 60":  "needs root and systemd; make deployment verifies the drop-in",
	"tutti move":        "needs servers; TestMove of internal/app moves to real ones with make test-services",
	"sha256sum -c":      "needs a release; .ci/run builds one and runs deploy/release/check",
	"apt install":       "needs root and a release; .ci/run builds the package and deploy/release/check reads it",
}

// TestGuidesRun: TestReadmeRuns runs every block of commands, except those that are listed with the reason.
func TestGuidesRun(t *testing.T) {
	t.Parallel()
	left := map[string]bool{}
	for _, block := range regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```").FindAllStringSubmatch(readme(t), -1) {
		switch block[1] {
		case "sh", "yaml", "json": // run, or tried as a configuration or a catalogue
			continue
		case "":
			if strings.Contains(block[2], "REST triggers") { // the picture
				continue
			}
		}
		begin := block[2][:min(16, len(block[2]))]
		found := false
		for prefix := range notRun {
			if strings.HasPrefix(begin, prefix) {
				found, left[prefix] = true, true
			}
		}
		if !found {
			t.Errorf("no test runs the block that begins with %q, and it has no reason", begin)
		}
	}
	for prefix := range notRun {
		if !left[prefix] {
			t.Errorf("no block begins with %q", prefix)
		}
	}
}

// TestImage: the image is built in stages, from scratch, static, and runs as a user without rights, and the flags are those of a release.
func TestImage(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(filepath.Join("..", "..", "deploy", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" AS build\n", "CGO_ENABLED=0 go build -trimpath -ldflags \"-s -w -X main.version=", "\nFROM scratch\n", "\nCOPY --from=build /src/LICENSE /out/THIRD-PARTY-LICENSES /usr/share/doc/tutti/\n", "\nUSER 65532:65532\n", "\nHEALTHCHECK ", "\nENTRYPOINT [\"/bin/tutti\"]\n"} {
		if !bytes.Contains(file, []byte(want)) {
			t.Errorf("the Dockerfile has no %q", want)
		}
	}
	module, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	needed := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	if !bytes.Contains(file, append([]byte("FROM golang:"), needed[1]...)) {
		t.Errorf("the image is not built with Go %s, which go.mod needs", needed[1])
	}
}
