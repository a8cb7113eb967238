package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/config"
	"tutti/internal/report/alert"
)

func TestAlerts(t *testing.T) {
	file := yamlOf(t, t.TempDir(), "url", "https://hooks.slack.com/services/T/B/k\n")
	c := parse(t, least+"\nserver: {publicUrl: 'https://tutti.example.org/base'}\nalerts:\n- {url: 'http://10.0.0.7/hook', secret: k}\n- {urlFile: "+file+
		", format: slack, events: [job_failed, dead_letters], repositories: [song.ca], minInterval: 1h, token: t}")
	want := []config.Alert{
		{URL: "http://10.0.0.7/hook", Format: alert.FormatJSON, MinInterval: 5 * time.Minute, Secret: "k"},
		{
			URL: "https://hooks.slack.com/services/T/B/k", Format: alert.FormatSlack, Events: []string{"job_failed", "dead_letters"},
			Repositories: []string{"song.ca"}, MinInterval: time.Hour, Token: "t",
		},
	}
	if diff := cmp.Diff(want, c.Alerts); diff != "" {
		t.Error(diff)
	}
	if out, err := c.YAML(); err != nil || strings.Contains(string(out), "10.0.0.7") || !strings.Contains(string(out), "url: '********'") {
		t.Errorf("the URL is shown: %s, %v", out, err)
	}

	one := func(members string) string { return least + "\nalerts: [{" + members + "}]" }
	runFaults(t, map[string]errorCase{
		"no URL":             {one("format: json"), "such as https://", []string{"alerts[0].url: is missing"}},
		"empty URL":          {one("url: ''"), "such as https://", []string{"alerts[0].url: is missing"}},
		"not a URL":          {one("url: hooks/s3cret"), "such as https://", []string{"alerts[0].url: is not an absolute http or https URL"}},
		"another scheme":     {one("url: 'ftp://a/s3cret'"), "", []string{"alerts[0].url: is not an absolute http or https URL"}},
		"unknown event":      {one("url: 'http://a', events: [job_fialed]"), "", []string{`alerts[0].events[0]: "job_fialed" is not one of job_failed, job_partial`}},
		"unknown format":     {one("url: 'http://a', format: teams"), "", []string{`alerts[0].format: must be one of json, slack, not "teams"`}},
		"unknown repository": {one("url: 'http://a', repositories: [song.ca, song.cb]"), "did you mean song.ca?", []string{`alerts[0].repositories[1]: "song.cb" is not the code of a repository`}},
		"interval too short": {one("url: 'http://a', minInterval: 9s"), "", []string{"alerts[0].minInterval: must be at least 10s, not 9s"}},
		"no interval":        {one("url: 'http://a', minInterval: 0s"), "", []string{"alerts[0].minInterval: must be more than zero, not 0s"}},
		"signature of Slack": {one("url: 'http://a', format: slack, secret: s"), "remove it", []string{"alerts[0].secret: has no effect with format slack"}},
		"too many":           {least + "\nalerts: [" + strings.Repeat("{url: 'http://a'},", 17) + "]", "", []string{"alerts: has 17 entries, the limit is 16"}},
		"public URL":         {least + "\nserver: {publicUrl: 'https://a/?b'}", "such as https://", []string{`server.publicUrl: "https://a/?b" is not a plain http or https URL`}},
	})
}
