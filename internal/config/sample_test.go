package config_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/config"
)

// TestSample: the file with every key loads unchanged as the defaults, and so does it with its examples of list elements uncommented,
// apart from the values that these require.
func TestSample(t *testing.T) {
	sample := string(config.Sample())
	want, err := config.Parse(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, parse(t, sample)); diff != "" {
		t.Errorf("the sample is not the defaults: %s\n%s", diff, sample)
	}
	if err := compile(t).Validate(asJSON(t, sample)); err != nil {
		t.Error(err)
	}
	comments := regexp.MustCompile(`\n[ #]*# `).ReplaceAllString(sample, " ")
	for _, e := range config.Entries() {
		if e.Type != "" && !regexp.MustCompile(`\. `+e.Variable+`\s`).MatchString(comments) {
			t.Errorf("the sample has no comment with %s", e.Variable)
		}
		if !strings.HasSuffix(e.Doc, ".") {
			t.Errorf("%s has no meaning that ends in a period: %q", e.Path, e.Doc)
		}
	}
	elements := regexp.MustCompile(`(?m)^( *)# (  - | {4})`).ReplaceAllString(sample, "$1$2")
	_, err = config.Parse([]byte(elements), nil)
	for line := range strings.Lines(fmt.Sprint(err)) {
		if !regexp.MustCompile(`^(alerts\[0\]\.url|schemas\.defaultOptions\.externalValidations\[0\]\.(url|jsonPath)): is (missing|empty)`).MatchString(line) {
			t.Errorf("with its examples: %s", line)
		}
	}
	if strings.Count(elements, "\n  - url:")+strings.Count(elements, "\n      - url:") != 2 {
		t.Errorf("the examples are not uncommented:\n%s", elements)
	}
}

func TestEffectiveNamesOrigins(t *testing.T) {
	folder := t.TempDir()
	secret := filepath.Join(folder, "password")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "tutti.yaml")
	content := "log: {level: debug}\nindex:\n  url: http://es:9200\n  username: u\n  passwordFile: " + secret + "\n" +
		"repositories:\n  - {code: a, type: song, url: 'http://song', indexName: a}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"TUTTI_LOG_FORMAT=json", "TUTTI_SERVER_HOSTS=a,b", "TUTTI_REPOSITORIES_0_TOKEN=s3cret", "DISABLE_GRAPHQL_INTROSPECTION=true"}
	with, err := config.Effective(file, environ, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  level: debug # line 1\n", "  format: json # variable TUTTI_LOG_FORMAT\n", "  hosts: [a, b] # variable TUTTI_SERVER_HOSTS\n",
		"  url: http://es:9200 # line 3\n", "  password: '********' # line 5\n", "  - code: a # line 7\n",
		"    token: '********' # variable TUTTI_REPOSITORIES_0_TOKEN\n", "  disableGraphQLIntrospection: true # variable DISABLE_GRAPHQL_INTROSPECTION\n", "  batchBytes: 2097152\n",
	} {
		if !strings.Contains(string(with), want) {
			t.Errorf("no %q in\n%s", want, with)
		}
	}
	without, err := config.Effective(file, environ, false)
	if err != nil || bytes.Contains(without, []byte("#")) || bytes.Contains(append(with, without...), []byte("s3cret")) {
		t.Errorf("%v:\n%s", err, without)
	}
	if _, err := config.Effective(file, []string{"TUTTI_LOG_FORMAT=x"}, true); err == nil || !strings.Contains(err.Error(), "log.format") {
		t.Errorf("of a wrong variable: %v", err)
	}
}

// TestReference: the guide to the configuration is the one of the keys; -update writes it.
func TestReference(t *testing.T) {
	golden(t, "../../deploy/docs/configuration.md", reference())
}

// reference returns the guide: a table for each section of the file.
func reference() []byte {
	var out bytes.Buffer
	out.WriteString("# Configuration\n\n" +
		"`tutti serve --config tutti.yaml` reads a YAML file. Each key is also an environment variable, which takes precedence. `[]` is an\n" +
		"element of a list and 0, 1, … in a variable; a list of texts may also be one variable, separated by commas. Durations are written\n" +
		"with their unit: 500ms, 30s, 2m, 1h30m. A secret may be in a file that the key with the suffix `File` names. `TUTTI_CONFIG` names the\n" +
		"file. With an unknown key, a wrong type or a contradiction tutti does not start, and the error names the key.\n\n" +
		"```sh\n" +
		"./tutti config init all.yaml                          # a file with every key, its default and its meaning\n" +
		"./tutti config show --config tutti.yaml --origin      # what is in effect, and where each value is from; secrets are masked\n" +
		"./tutti config schema > tutti.schema.json             # the JSON Schema of the file, for editors\n" +
		"./tutti check --config tutti.yaml                     # tries everything that the file names\n" +
		"```\n\n" +
		"This page is generated from the keys: `go test ./internal/config -run TestReference -update`.\n")
	cell := func(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
	code := func(text string) string {
		if text == "" {
			return ""
		}
		return "`" + cell(text) + "`"
	}
	const head = "\n| key | value | default | variable | meaning |\n|---|---|---|---|---|\n"
	table := false
	for _, e := range config.Entries() {
		switch top := !strings.Contains(e.Path, "."); {
		case e.Type == "" && top:
			fmt.Fprintf(&out, "\n## %s\n\n%s\n%s", e.Path, e.Doc, head)
			table = true
		case top && strings.Contains(out.String(), "\n## ") || !table:
			fmt.Fprintf(&out, "\n## %s\n%s", e.Path, head)
			table = true
			fallthrough
		default:
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", code(e.Path), cell(e.Type), code(e.Default), code(e.Variable), cell(e.Doc))
		}
	}
	return out.Bytes()
}
