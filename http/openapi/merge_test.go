package openapi_test

import (
	"strings"
	"testing"

	"tutti/http/openapi"
)

func TestMerge(t *testing.T) {
	const jobs = `
anchors:
  errors: &errors
    404: {description: missing}
tags: [{name: Jobs}]
paths:
  /jobs: {get: {responses: {200: {description: "2026-05-04", x-at: 2026-05-04T10:00:00Z}, <<: *errors}}}
`
	const letters = `
tags: [{name: Letters}]
paths: {/letters: {get: {deprecated: false, x-size: 1.5}}}
`
	got, err := openapi.Merge("1.2.3", "/base", []byte(jobs), []byte(letters))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"version":"1.2.3"`, `"servers":[{"url":"/base"}]`, `"tags":[{"name":"Jobs"},{"name":"Letters"}]`,
		`"paths":{"/jobs":{"get":{"responses":{"200":{"description":"2026-05-04","x-at":"2026-05-04T10:00:00Z"},"404":{"description":"missing"}}}},` +
			`"/letters":{"get":{"deprecated":false,"x-size":1.5}}}`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if strings.Contains(string(got), "anchors") {
		t.Error("anchors are served")
	}
	for name, c := range map[string]struct {
		parts []string
		want  string
	}{
		"not YAML":         {[]string{"paths: ["}, "reading a part of the OpenAPI document: yaml: line 1"},
		"one path twice":   {[]string{"paths: {/jobs: {get: {summary: a}}}", "paths: {/jobs: {get: {summary: b}}}"}, "two parts of the OpenAPI document define #/paths//jobs/get/summary"},
		"another kind":     {[]string{"paths: []", "paths: {}"}, "two parts of the OpenAPI document define #/paths"},
		"one member twice": {[]string{"paths: {/jobs: {}, /jobs: {}}"}, "a part of the OpenAPI document defines /jobs twice, at or below line 1"},
		"empty":            {[]string{""}, "a part of the OpenAPI document is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			var parts [][]byte
			for _, p := range c.parts {
				parts = append(parts, []byte(p))
			}
			if _, err := openapi.Merge("1", "", parts...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
