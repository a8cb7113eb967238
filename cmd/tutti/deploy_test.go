package main

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"

	"tutti/internal/app"
	"tutti/internal/config"
)

// TestPrometheusConfiguration: the configuration for Prometheus scrapes tutti where it listens by default.
func TestPrometheusConfiguration(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Global struct {
			ScrapeInterval string `yaml:"scrape_interval"`
		} `yaml:"global"`
		ScrapeConfigs []struct {
			JobName       string `yaml:"job_name"`
			MetricsPath   string `yaml:"metrics_path"`
			StaticConfigs []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.ScrapeConfigs) != 1 || len(file.ScrapeConfigs[0].StaticConfigs) != 1 {
		t.Fatalf("scrape configurations: %+v", file.ScrapeConfigs)
	}
	scrape := file.ScrapeConfigs[0]
	targets := scrape.StaticConfigs[0].Targets
	if scrape.JobName != "tutti" || scrape.MetricsPath != "/metrics" || len(targets) != 1 || targets[0] != config.Default().Server.Listen {
		t.Errorf("scrapes %+v, tutti listens on %s", scrape, config.Default().Server.Listen)
	}
}

// metric describes a metric that tutti registers.
type metric struct {
	name, help string
	labels     []string
}

// registered returns every metric that tutti registers, without those of the Go runtime and of the process.
func registered(t *testing.T) []metric {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	a, err := app.New(cfg, app.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		a.Registry().Describe(descs)
	}()
	var all []metric
	for desc := range descs {
		found := regexp.MustCompile(`fqName: "(tutti_[a-z_]+)", help: ("(?:[^"\\]|\\.)*"),.*variableLabels: \{(.*)\}\}$`).FindStringSubmatch(desc.String())
		if found == nil {
			continue
		}
		help, err := strconv.Unquote(found[2])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, metric{found[1], help, strings.FieldsFunc(found[3], func(r rune) bool { return r == ',' })})
	}
	slices.SortFunc(all, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b metric) bool { return a.name == b.name })
}

// described returns the labels of every metric that tutti registers.
func described(t *testing.T) map[string][]string {
	t.Helper()
	metrics := map[string][]string{}
	for _, m := range registered(t) {
		metrics[m.name] = m.labels
	}
	return metrics
}

// unknownNames returns the metrics and labels of a PromQL expression, and the labels of its texts, that tutti does not have.
func unknownNames(expr, texts string, metrics map[string][]string) []string {
	labels, unknown := []string{"instance", "job"}, []string(nil)
	for _, name := range regexp.MustCompile(`tutti_[a-z_]+`).FindAllString(expr, -1) {
		of, known := metrics[name]
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if base, cut := strings.CutSuffix(name, suffix); cut && !known {
				of, known = metrics[base]
				of = append(slices.Clone(of), "le")
			}
		}
		if !known {
			unknown = append(unknown, name)
		}
		labels = append(labels, of...)
	}
	for _, list := range regexp.MustCompile(`by \(([^)]*)\)|\{([^}]*)\}`).FindAllStringSubmatch(expr, -1) {
		for item := range strings.SplitSeq(list[1]+list[2], ",") {
			texts += "{{" + regexp.MustCompile(`[=!~].*`).ReplaceAllString(item, "") + "}}"
		}
	}
	for _, used := range regexp.MustCompile(`\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}`).FindAllStringSubmatch(texts, -1) {
		if !slices.Contains(labels, used[1]) {
			unknown = append(unknown, used[1])
		}
	}
	return unknown
}

// TestShortSentences: no sentence of the runbook and the glossary, which people read in a hurry, has more than 30 words.
func TestShortSentences(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"runbook", "glossary"} {
		text := guide(t, name)
		if len(text) < 2000 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		for sentence := range strings.SplitSeq(regexp.MustCompile(`[.:?]\s|\n\n|\n- |\|`).ReplaceAllString(text, "\x00"), "\x00") {
			if n := len(strings.Fields(sentence)); n > 30 {
				t.Errorf("%s has a sentence of %d words: %s", name, n, sentence)
			}
		}
	}
}

// TestMonitoringNames: every metric and label in the alert rules and on the dashboard is one that tutti registers, and the variables of
// the dashboard select the repositories and processes of every query.
func TestMonitoringNames(t *testing.T) {
	t.Parallel()
	metrics := described(t)
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "rules.yaml"))
	if err == nil {
		err = yaml.Unmarshal(data, &rules)
	}
	if err != nil || len(rules.Groups) != 1 || len(rules.Groups[0].Rules) < 10 {
		t.Fatalf("rules: %+v, %v", rules, err)
	}
	var explained []string
	for _, rule := range rules.Groups[0].Rules {
		if unknown := unknownNames(rule.Expr, rule.Annotations["summary"], metrics); unknown != nil || rule.Annotations["summary"] == "" {
			t.Errorf("%s: tutti has no %q", rule.Alert, unknown)
		}
		if want := "deploy/docs/runbook.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook"] != want {
			t.Errorf("%s has the runbook %q, want %q", rule.Alert, rule.Annotations["runbook"], want)
		}
		explained = append(explained, "## "+rule.Alert)
	}
	if headings := regexp.MustCompile(`(?m)^## .*$`).FindAllString(guide(t, "runbook"), -1); !slices.Equal(headings, explained) {
		t.Errorf("the runbook has %q, the rules are %q", headings, explained)
	}
	dashboard, err := os.ReadFile(filepath.Join("..", "..", "deploy", "grafana", "tutti.json"))
	if err != nil || !gjson.ValidBytes(dashboard) {
		t.Fatalf("the dashboard: %v", err)
	}
	targets := 0
	for _, panel := range gjson.GetBytes(dashboard, "panels").Array() {
		for _, target := range panel.Get("targets").Array() {
			targets++
			if unknown := unknownNames(target.Get("expr").Str, target.Get("legendFormat").Str, metrics); unknown != nil {
				t.Errorf("%s: tutti has no %q", panel.Get("title").Str, unknown)
			}
			for _, query := range regexp.MustCompile(`\b((?:tutti|process|go)_[a-z_]+)(\{[^}]*\})?`).FindAllStringSubmatch(target.Get("expr").Str, -1) {
				variables := []string{"instance"}
				if slices.Contains(metrics[query[1]], "repository") {
					variables = append(variables, "repository")
				}
				for _, variable := range variables {
					if !strings.Contains(query[2], variable+`=~"$`+variable+`"`) {
						t.Errorf("%s: %s is not of the selected %s", panel.Get("title").Str, query[0], variable)
					}
				}
			}
		}
	}
	for _, variable := range gjson.GetBytes(dashboard, "templating.list").Array() {
		values := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(variable.Get("query.query").Str)
		if values == nil || metrics[values[1]] == nil || values[2] != variable.Get("name").Str {
			t.Errorf("the values of the variable %s: %s", variable.Get("name").Str, variable.Get("query.query").Str)
		}
	}
	if targets < 20 {
		t.Errorf("the dashboard has %d queries", targets)
	}
	if got := unknownNames(`sum by (node) (rate(tutti_jobs_bucket{state="x",kind="y"}[5m]))`, "{{nod}}", metrics); len(got) != 3 {
		t.Errorf("of an expression with three wrong labels, %q are found", got)
	}
}

// TestCompose: every service has a health check and waits only for others that exist, and tutti accepts the configuration in it.
func TestCompose(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Image       string
			Ports       []string
			ReadOnly    bool `yaml:"read_only"`
			Environment map[string]string
			Volumes     []string
			DependsOn   map[string]any `yaml:"depends_on"`
			Healthcheck struct{ Test []string }
		}
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tutti", "nats", "elasticsearch", "postgres", "prometheus", "grafana"} {
		if _, found := file.Services[name]; !found {
			t.Errorf("no service %s", name)
		}
	}
	for name, service := range file.Services {
		if len(service.Healthcheck.Test) < 2 || service.Image == "" {
			t.Errorf("%s has no health check or image", name)
		}
		for other := range service.DependsOn {
			if _, found := file.Services[other]; !found {
				t.Errorf("%s depends on %s", name, other)
			}
		}
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %s", name, port)
			}
		}
		for _, volume := range service.Volumes {
			if path, _, _ := strings.Cut(volume, ":"); strings.HasPrefix(path, ".") {
				if _, err := os.Stat(filepath.Join("..", "..", "deploy", path)); err != nil {
					t.Errorf("%s mounts %v", name, err)
				}
			}
		}
	}
	if !file.Services["tutti"].ReadOnly {
		t.Error("tutti can write to its image")
	}
	environ := []string{"TUTTI_DATA_DIR=/data", "TUTTI_SERVER_LISTEN=0.0.0.0:8080"} // of the image
	for name, value := range file.Services["tutti"].Environment {
		environ = append(environ, name+"="+regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllString(value, "secret1"))
	}
	cfg, err := config.Load(filepath.Join("..", "..", "deploy", "compose", "tutti.yaml"), environ)
	if err != nil || cfg.Queue.URL == "" || cfg.Index.URL == "" || cfg.Store.URL == "" {
		t.Errorf("tutti's configuration: %v", err)
	}
}

// TestChart: tutti accepts the configuration in the chart's values, which shares everything between its three processes, and every
// template value that the chart reads is one that values.yaml has.
func TestChart(t *testing.T) {
	t.Parallel()
	chart := filepath.Join("..", "..", "deploy", "helm", "tutti")
	values := map[string]any{}
	data, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err == nil {
		err = yaml.Unmarshal(data, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"TUTTI_DATA_DIR=/data", "TUTTI_SERVER_LISTEN=0.0.0.0:8080"} // of the image
	secrets, _ := values["secrets"].(map[string]any)
	for name := range secrets {
		environ = append(environ, name+"=postgres://tutti:secret1@postgres:5432/tutti")
	}
	settings, err := yaml.Marshal(values["config"])
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tutti.yaml")
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, environ)
	if err != nil || cfg.Queue.URL == "" || cfg.Index.URL == "" || cfg.Store.URL == "" {
		t.Errorf("tutti's configuration: %v", err)
	}
	if values["replicas"] != 3 {
		t.Errorf("%v replicas", values["replicas"])
	}
	template, err := os.ReadFile(filepath.Join(chart, "templates", "all.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	used := regexp.MustCompile(`\.Values\.([A-Za-z.]+)`).FindAllStringSubmatch(string(template), -1)
	if len(used) < 10 {
		t.Errorf("the template reads %d values", len(used))
	}
	for _, path := range used {
		var value any = values
		for key := range strings.SplitSeq(path[1], ".") {
			of, _ := value.(map[string]any)
			found := false
			if value, found = of[key]; !found {
				t.Errorf("values.yaml has no %s", path[1])
			}
		}
	}
}

// TestUnitCredentials: tutti reads its secrets from the credentials that the drop-in of the unit names, by variables as by keys.
func TestUnitCredentials(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "systemd", "credentials.conf"))
	if err != nil {
		t.Fatal(err)
	}
	dropIn, folder := string(data), t.TempDir()
	const secret = "postgres://tutti:secret1@postgres:5432/tutti"
	credentials := regexp.MustCompile(`(?m)^LoadCredential=([a-z-]+):/etc/tutti/secrets/([a-z-]+)$`).FindAllStringSubmatch(dropIn, -1)
	if len(credentials) == 0 {
		t.Fatal("the drop-in loads no credentials")
	}
	for _, credential := range credentials {
		if err := os.WriteFile(filepath.Join(folder, credential[1]), []byte(secret+"\n"), 0o400); err != nil || credential[1] != credential[2] {
			t.Errorf("%s: %v", credential[0], err)
		}
	}
	var environ []string
	for _, variable := range regexp.MustCompile(`(?m)^Environment=(.*)$`).FindAllStringSubmatch(dropIn, -1) {
		environ = append(environ, strings.ReplaceAll(variable[1], "%d", folder))
	}
	key := regexp.MustCompile(`(?m)^#   (store: .*)$`).FindStringSubmatch(dropIn)
	if key == nil {
		t.Fatal("the drop-in shows no key")
	}
	file := strings.ReplaceAll(key[1], "/run/credentials/tutti.service", folder)
	byVariable, err := config.Parse(nil, environ)
	byKey, errKey := config.Parse([]byte(file), nil)
	if err != nil || errKey != nil || byVariable.Store.URL != secret || byKey.Store.URL != secret {
		t.Errorf("by variables %q (%v), by keys %q (%v)", byVariable.Store.URL, err, byKey.Store.URL, errKey)
	}
}

// TestReleaseKeepsForeignFolders: the build of a release replaces only what is a release.
func TestReleaseKeepsForeignFolders(t *testing.T) {
	t.Parallel()
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), filepath.Join("..", "..", "deploy", "release", "build"))
	build.Env = append(os.Environ(), "OUT="+filepath.Dir(kept), "VERSION=1", "GOFLAGS=-none") // Go would fail at once
	output, err := build.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "is not a release") {
		t.Errorf("%v: %s", err, output)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}
